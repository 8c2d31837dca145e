"""Rendering of JobSets: restarts, ranks, names, rejected templates."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.problems import InvalidDocument
from spotladder.api.tieredjob import TieredJob
from tests.workloads.builders import job, jobset_template
from tests.workloads.rendering import SET, env_of, rejection, rendered, workers


def many(replicas: int, parallelism: int, **spec: Any) -> TieredJob:
    template = jobset_template()
    entry = template["spec"]["replicatedJobs"][0]
    entry["replicas"] = replicas
    entry["template"]["spec"]["parallelism"] = parallelism
    template["spec"].update(spec)
    return job(template)


@pytest.mark.parametrize(("pods", "action"), [(1, "FailJob"), (2, "Ignore")])
def test_a_failed_sidecar_does_not_run_an_ended_program_again_with_its_set(pods: int, action: str) -> None:
    template = jobset_template()
    inner = template["spec"]["replicatedJobs"][0]["template"]["spec"]
    inner["parallelism"] = pods
    inner["template"]["spec"]["containers"].append({"name": "shipper", "image": "example.org/shipper:1"})
    inner["template"]["spec"]["initContainers"] = [
        {"name": "download", "image": "example.org/get:1"},
        {"name": "istio", "image": "example.org/istio:1", "restartPolicy": "Always"},
    ]
    (entry,) = rendered(job(template))["spec"]["replicatedJobs"]
    killed, rules = [137, 143], entry["template"]["spec"]["podFailurePolicy"]["rules"]
    assert rules == [
        {"action": "FailJob", "onExitCodes": {"containerName": "train", "operator": "NotIn", "values": killed}},
        {"action": "FailJob", "onExitCodes": {"containerName": "download", "operator": "NotIn", "values": killed}},
        {"action": "Count", "onExitCodes": {"containerName": "train", "operator": "In", "values": killed}},
        {"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": action, "onExitCodes": {"operator": "NotIn", "values": [0]}},
    ]


@pytest.mark.parametrize(
    ("replicas", "parallelism", "field"),
    [
        (1, 4, "metadata.annotations['batch.kubernetes.io/job-completion-index']"),
        (4, 1, "metadata.labels['jobset.sigs.k8s.io/job-index']"),
    ],
)
def test_plain_scripts_get_rank_and_world_size(replicas: int, parallelism: int, field: str) -> None:
    env = env_of(workers(many(replicas, parallelism))["containers"][0])
    assert env["RANK"] == {"fieldRef": {"fieldPath": field}}
    assert env["WORLD_SIZE"] == "4"
    assert env["MASTER_ADDR"] == "digits-a003-workers-0-0.digits-a003"


def test_the_users_coordinator_is_kept() -> None:
    of = many(1, 4, coordinator={"replicatedJob": "workers", "podIndex": 2}, network={"subdomain": "mesh"})
    assert env_of(workers(of)["containers"][0])["MASTER_ADDR"] == "digits-a003-workers-0-2.mesh"


def named_jobset(name: str, *, workers: str = "workers", replicas: int = 1, pods: int = 2, **spec: Any) -> TieredJob:
    template = jobset_template()
    (entry,) = template["spec"]["replicatedJobs"]
    entry.update(name=workers, replicas=replicas)
    entry["template"]["spec"]["parallelism"] = pods
    template["spec"].update(spec)
    return job(template, name=name)


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (named_jobset("j" * 20), "j" * 20 + "-a003"),
        (named_jobset("j" * 21), None),
        (named_jobset("j" * 42), None),
        (named_jobset("j" * 42, replicas=100, pods=1000), None),
        (named_jobset("j" * 42, workers="w" * 24), None),
        (named_jobset("j" * 37, network={"subdomain": "mesh"}), "j" * 37 + "-a003"),
        (named_jobset("j" * 42, network={"subdomain": "m" * 20}), None),
        (named_jobset("j" * 42, coordinator={"replicatedJob": "workers", "podIndex": 1}), None),
    ],
    ids=[
        "20 characters fit",
        "21 characters",
        "42 characters",
        "large indexes",
        "long replicated job",
        "short subdomain",
        "long subdomain",
        "own coordinator",
    ],
)
def test_names_that_jobset_derives_have_at_most_63_characters(of: TieredJob, name: str | None) -> None:
    jobset = rendered(of)
    made, spec = jobset["metadata"]["name"], jobset["spec"]
    (entry,) = spec["replicatedJobs"]
    pods = entry["template"]["spec"]["completions"]
    assert len(f"{made}-{entry['name']}-{entry.get('replicas', 1) - 1}-{pods - 1}-abcde") <= 63
    chosen, subdomain = spec["coordinator"], (spec.get("network") or {}).get("subdomain") or made
    place = f"{chosen['replicatedJob']}-{chosen.get('jobIndex', 0)}-{chosen.get('podIndex', 0)}"
    assert len(f"{made}-{place}.{subdomain}") <= 63
    assert made.startswith("j")
    assert made.endswith("-a003")
    assert name in (None, made)


def test_shortened_names_are_distinct() -> None:
    jobs = named_jobset("j" * 40 + "a"), named_jobset("j" * 40 + "b")
    assert len({rendered(of)["metadata"]["name"] for of in jobs}) == 2


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (named_jobset("digits", workers="w" * 40), f"{SET}.replicatedJobs[0].name"),
        (named_jobset("digits", network={"subdomain": "m" * 50}), f"{SET}.network.subdomain"),
    ],
)
def test_a_jobset_whose_own_names_are_too_long_is_rejected(of: TieredJob, path: str) -> None:
    error = rejection(of)
    assert error.path == path
    assert "63" in error.message


def test_no_rank_with_several_replicated_jobs_of_several_pods() -> None:
    assert "RANK" not in env_of(workers(many(2, 2))["containers"][0])


JOB = f"{SET}.replicatedJobs[0]"


def wrong_in(**changes: Any) -> dict[str, Any]:
    template = jobset_template()
    template["spec"]["replicatedJobs"][0]["template"]["spec"].update(changes)
    return template


def wrong_set(replicas: int = 1, **changes: Any) -> dict[str, Any]:
    template = jobset_template()
    template["spec"] |= changes
    template["spec"]["replicatedJobs"][0]["replicas"] = replicas
    return template


@pytest.mark.parametrize(
    ("template", "path"),
    [
        (wrong_set(failurePolicy={"maxRestarts": 3}), f"{SET}.failurePolicy"),
        (wrong_set(suspend=True), f"{SET}.suspend"),
        (wrong_set(ttlSecondsAfterFinished=60), f"{SET}.ttlSecondsAfterFinished"),
        (wrong_in(backoffLimit=6), f"{JOB}.template.spec.backoffLimit"),
        (wrong_in(podFailurePolicy={"rules": []}), f"{JOB}.template.spec.podFailurePolicy"),
        (wrong_in(parallelism=0), f"{JOB}.template.spec.parallelism"),
        (wrong_in(parallelism=4, completions=2), f"{JOB}.template.spec.completions"),
        (wrong_in(completionMode="NonIndexed"), f"{JOB}.template.spec.completionMode"),
        (wrong_set(50_001), f"{SET}.replicatedJobs"),
        (wrong_in(template=None), JOB),
        (wrong_set(0), f"{JOB}.replicas"),
    ],
)
def test_conflicting_or_incomplete_jobset_templates_are_rejected(template: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidDocument) as raised:
        job(template)
    assert [problem.path for problem in raised.value.problems] == [path]


def test_all_problems_of_a_jobset_are_reported_at_once() -> None:
    template = wrong_in(backoffLimit=6, parallelism=0)
    template["spec"]["failurePolicy"] = {"maxRestarts": 3}
    with pytest.raises(InvalidDocument) as raised:
        job(template)
    names = [problem.path.rpartition(".")[2] for problem in raised.value.problems]
    assert names == ["failurePolicy", "backoffLimit", "parallelism"]
