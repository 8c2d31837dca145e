"""The CRDs, their CEL rules and the rendered objects of attempts on a real API server."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.tieredjob import TieredJob
from spotladder.workloads.kinds import all_made, workload_of
from spotladder.workloads.listed_tiers import resolve_tiers
from spotladder.workloads.names import Origin
from tests.absent import absent
from tests.conversion.sources import converted
from tests.conversion.test_manifests import ACCEPTED
from tests.golden.test_attempts import PLAIN, TEMPLATES, attempt, full_attempt, plain_attempt
from tests.kube.apiserver import TOKEN, ApiServer, tools
from tests.kube.world import install_kinds
from tests.workloads import builders

JOBSET_CRD = tools() / "crds" / "jobset" / "jobset.x-k8s.io_jobsets.yaml"
GROUP = "/apis/spotladder.io/v1alpha1"
JOBS = f"{GROUP}/namespaces/default/tieredjobs"
TIERS = f"{GROUP}/capacitytiers"

Object = dict[str, Any]


@dataclass(frozen=True)
class ApiRequests:
    """Plain requests to the API server. Objects are created with `dryRun`, unless they are kept."""

    server: ApiServer

    def ask(self, method: str, path: str, body: Object | None = None, *, keep: bool = False) -> tuple[int, Object]:
        query = "fieldValidation=Strict" + ("" if keep else "&dryRun=All")
        request = urllib.request.Request(
            f"{self.server.url}{path}?{query}",
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
            method=method,
        )
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def refusal(self, method: str, path: str, body: Object) -> str:
        """The message of the refusal; "" if the object is accepted."""
        status, answer = self.ask(method, path, body)
        return "" if status < 300 else answer["message"]


@pytest.fixture(scope="module")
def api(api_server: ApiServer) -> ApiRequests:
    return ApiRequests(api_server)


def job(**spec: Any) -> Object:
    ray = {"template": {"spec": {"entrypoint": "python train.py", "rayClusterSpec": {}}}}
    tiers = [{"name": "spot-a", "capacityTier": "a"}, {"name": "od", "capacityTier": "b"}]
    return {
        "apiVersion": "spotladder.io/v1alpha1", "kind": "TieredJob", "metadata": {"name": "digits"},
        "spec": {"tiers": tiers, "checkpoints": {"uri": "s3://bucket/prefix"}, "workload": {"ray": ray}, **spec},
    }  # fmt: skip


def cached(cache: str | int) -> Object:
    return job(checkpoints={"uri": "s3://bucket/prefix", "cache": cache})


def tier(**spec: Any) -> Object:
    return {
        "apiVersion": "spotladder.io/v1alpha1", "kind": "CapacityTier", "metadata": {"name": "a"}, "spec": spec,
    }  # fmt: skip


def named(name: str) -> Object:
    return {**job(), "metadata": {"name": name}}


JOBSET: Object = {"template": {"spec": {"replicatedJobs": []}}}
BOTH = {"jobSet": JOBSET, "ray": {"template": {"spec": {}}}}
ONE_TIER = {"name": "a", "capacityTier": "a"}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (job(), ""),
        (job(workload={"jobSet": JOBSET}), ""),
        (job(workload=BOTH), "needs exactly one of ray and jobSet"),
        (job(workload={}), "needs exactly one of ray and jobSet"),
        (job(tiers=[ONE_TIER, ONE_TIER]), "Duplicate value"),
        (job(grace="90"), "spec.grace"),
        (job(grace="1h30m"), ""),
        (job(grcae="90s"), 'unknown field "spec.grcae"'),
        (cached("20Gi"), ""),
        (cached(20_000_000_000), ""),
        (cached("20GB"), "spec.checkpoints.cache"),
        (named("j" * 42), ""),
        (named("j" * 43), "at most 42 characters"),
        (named("4digits"), "begin with a letter"),
        (named("digits.v2"), "begin with a letter"),
    ],
)
def test_a_job_is_validated_when_it_is_created(api: ApiRequests, body: Object, said: str) -> None:
    refusal = api.refusal("POST", JOBS, body)
    assert said in refusal
    assert bool(said) == bool(refusal), refusal


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (tier(), ""),
        (tier(capacityType="spot", provider="aws", price={"perNodeHour": "0.42"}), ""),
        (tier(price={"source": "aws"}), ""),
        (tier(price={"source": "gcp", "table": "gs://prices"}), ""),
        (tier(price={}), "exactly one of perNodeHour and source"),
        (tier(price={"perNodeHour": "1", "source": "aws"}), "exactly one of perNodeHour and source"),
        (tier(price={"source": "aws", "table": "x"}), "table is required with source gcp"),
        (tier(price={"source": "gcp"}), "table is required with source gcp"),
        ({**tier(), "metadata": {"name": "t" * 64}}, "at most 63"),
        ({**tier(), "metadata": {"name": "a.b"}}, "becomes a label"),
    ],
)
def test_a_capacity_tier_is_validated_when_it_is_created(api: ApiRequests, body: Object, said: str) -> None:
    refusal = api.refusal("POST", TIERS, body)
    assert said in refusal
    assert bool(said) == bool(refusal), refusal


# --- changes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def left_spot(api: ApiRequests) -> Iterator[Object]:
    """A job that was on spot-a and is on od."""
    status, made = api.ask("POST", JOBS, job(), keep=True)
    assert status == 201, made
    made["status"] = {
        "phase": "Running", "tier": "od", "attempt": 2,
        "tiers": [{"name": "spot-a", "attempts": 1}, {"name": "od", "attempts": 1}],
    }  # fmt: skip
    status, made = api.ask("PUT", f"{JOBS}/digits/status", made, keep=True)
    assert status == 200, made
    yield made
    api.ask("DELETE", f"{JOBS}/digits", keep=True)


Change = Callable[[Object], Any]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda spec: spec.update(budget="10"), ""),
        (lambda spec: spec["tiers"].append({"name": "last", "capacityTier": "c"}), ""),
        (lambda spec: spec["tiers"][0].update(maxFailures=9), ""),
        (lambda spec: spec["tiers"].pop(1), ""),
        (lambda spec: spec["tiers"].pop(0), "a tier that the job has left cannot be removed"),
        (lambda spec: spec["tiers"][0].update(name="spot-b"), "a tier that the job has left cannot be removed"),
        (lambda spec: spec["tiers"][0].update(capacityTier="z"), "a tier that the job has left cannot be removed"),
        (lambda spec: spec["tiers"][1].update(capacityTier="z"), ""),
        (lambda spec: spec["checkpoints"].update(uri="s3://other"), "the job resumes from this address"),
        (lambda spec: spec["checkpoints"].update(keep=9), ""),
        (lambda spec: spec.update(workload={"jobSet": JOBSET}), "cannot change from ray to jobSet"),
    ],
    ids=[
        "another budget", "an additional tier", "more failures on an earlier tier", "its own tier is removed",
        "a tier it left is removed", "an earlier tier is renamed", "an earlier tier gets other capacity",
        "the current tier gets other capacity", "other checkpoints", "more checkpoints", "another workload",
    ],
)  # fmt: skip
def test_a_changed_job_is_validated(api: ApiRequests, left_spot: Object, change: Change, said: str) -> None:
    changed = deepcopy(left_spot)
    change(changed["spec"])
    refusal = api.refusal("PUT", f"{JOBS}/digits", changed)
    assert said in refusal
    assert bool(said) == bool(refusal), refusal


def test_a_job_that_no_controller_has_seen_is_in_progress_for_kstatus(api: ApiRequests) -> None:
    _, made = api.ask("POST", JOBS, job())
    assert made["status"] == {"observedGeneration": -1}


def test_the_largest_job_is_within_the_budget_of_the_rules(api: ApiRequests) -> None:
    tiers = [{"name": f"tier-{n:02d}-{'x' * 55}", "capacityTier": "c" * 63} for n in range(32)]
    _, made = api.ask("POST", JOBS, {**job(tiers=tiers), "metadata": {"name": "large"}}, keep=True)
    try:
        used = [{"name": f"gone-{n:03d}-{'x' * 54}", "attempts": 1} for n in range(224)]
        made["status"] = {"tier": tiers[0]["name"], "tiers": [{"name": t["name"], "attempts": 1} for t in tiers] + used}
        made["status"]["state"] = "s" * 500_000
        status, made = api.ask("PUT", f"{JOBS}/large/status", made, keep=True)
        assert status == 200, made
        assert api.refusal("PUT", f"{JOBS}/large", made) == ""
    finally:
        api.ask("DELETE", f"{JOBS}/large", keep=True)


# --- rendered objects -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def with_jobset(api: ApiRequests) -> ApiRequests:
    """Install the JobSet CRD too, if the tools have it."""
    if not JOBSET_CRD.exists():
        absent(f"not found: {JOBSET_CRD.name} (SPOTLADDER_TOOLS)", "kube")
    import asyncio

    asyncio.run(install_kinds(api.server, [JOBSET_CRD]))
    return api


def path_of(body: Object) -> str:
    (kind,) = [kind for kind in all_made() if kind.kind == body["kind"]]
    return f"/apis/{body['apiVersion']}/namespaces/default/{kind.plural}"


def pod_templates(thing: Any) -> Iterator[Object]:
    if isinstance(thing, dict):
        if "containers" in thing.get("spec", {}):
            yield thing
        for inner in thing.values():
            yield from pod_templates(inner)
    elif isinstance(thing, list):
        for inner in thing:
            yield from pod_templates(inner)


def refusals(api: ApiRequests, body: Object) -> list[str]:
    """The messages for the object, for the Jobs that JobSet derives from it, and for the pods."""
    body["metadata"]["namespace"] = "default"
    found = [api.refusal("POST", path_of(body), body)]
    for entry in body["spec"].get("replicatedJobs", ()):
        one = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}, **entry["template"]}
        found.append(api.refusal("POST", "/apis/batch/v1/namespaces/default/jobs", one))
    for template in pod_templates(body):
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        pod["metadata"] = {**template.get("metadata", {}), "name": "one"}
        found.append(api.refusal("POST", "/api/v1/namespaces/default/pods", pod))
    return [message for message in found if message]


@pytest.mark.parametrize("made", [plain_attempt, full_attempt])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_rendered_attempt_is_accepted(
    with_jobset: ApiRequests, made: Callable[[str], list[Object]], template: str
) -> None:
    """With strict field validation."""
    for body in made(template):
        assert refusals(with_jobset, body) == []


def test_the_job_of_a_set_with_sidecars_is_accepted(with_jobset: ApiRequests) -> None:
    """JobSet's CRD does not check the rules for failed pods."""
    template = builders.jobset_template()
    pod = builders.worker_spec(template)
    pod["containers"].append({"name": "shipper", "image": "example.org/shipper:1"})
    pod["initContainers"] = [{"name": "istio", "image": "example.org/istio:1", "restartPolicy": "Always"}]
    for body in attempt(builders.job(template), PLAIN):
        assert refusals(with_jobset, body) == []


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_attempt_of_a_converted_job_is_accepted(with_jobset: ApiRequests, name: str) -> None:
    capacity = CapacityTier.model_validate(tier(capacityType="spot", provider="gcp"))
    for draft in converted(name, "a").drafts:
        job = TieredJob.model_validate(draft.job)
        (resolved,) = resolve_tiers(job, {"a": capacity})
        for body in workload_of(job).render(job, Origin(""), resolved, 1, {}):
            assert refusals(with_jobset, body) == []
