"""What the controller adds to the user's template, beside what the complete objects in tests/golden show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.tieredjob import TieredJob
from spotladder.workloads import names
from spotladder.workloads.grace import drain_of, grace_of
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.records import QUEUE
from spotladder.workloads.template import digests_of
from tests.workloads.builders import job, jobset_template, ray_template, tier, worker_spec
from tests.workloads.rendering import RAY, env_of, head, rejection, rendered, workers

# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job_name", "attempt", "expected"),
    [
        ("digits", 1, "digits-a001"),
        ("digits", 1000, "digits-a1000"),
        ("j" * 42, 999, "j" * 42 + "-a999"),
    ],
)
def test_the_name_of_an_attempt_has_its_number(job_name: str, attempt: int, expected: str) -> None:
    assert names.attempt_name(job_name, attempt) == expected


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["rayjob", "jobset"])
def test_amounts_without_quotes_are_text_as_in_a_pod(template: dict[str, Any]) -> None:
    """The API server reads 0.5 in a pod, and refuses it in a RayJob or JobSet."""
    (program,) = worker_spec(template)["containers"]
    program["resources"] = {"requests": {"cpu": 0.5}, "limits": {"cpu": 1.5, "memory": "2Gi", "nvidia.com/gpu": 1}}
    assert workers(job(template))["containers"][0]["resources"] == {
        "requests": {"cpu": "0.5"},
        "limits": {"cpu": "1.5", "memory": "2Gi", "nvidia.com/gpu": 1},
    }


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["rayjob", "jobset"])
def test_rendering_does_not_modify_the_template(template: dict[str, Any]) -> None:
    of = job(template)
    before = of.model_dump_json()
    rendered(of, provider="gcp", capacityType="spot")
    assert of.model_dump_json() == before


@pytest.mark.parametrize("template", [ray_template(), jobset_template()], ids=["rayjob", "jobset"])
def test_pods_have_the_labels_by_which_costs_are_grouped(template: dict[str, Any]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "pods.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(spotladder\.io/\w+)` \| `label:(\w+)` \|", page, re.MULTILINE)
    assert len(documented) == 4
    pods = _pod_templates(rendered(job(template)))
    assert pods
    for label, group in documented:
        assert group == re.sub(r"[^A-Za-z0-9_]", "_", label), "OpenCost replaces what Prometheus does not allow"
        assert all(pod["metadata"]["labels"][label] for pod in pods)


def _pod_templates(thing: Any) -> list[dict[str, Any]]:
    if isinstance(thing, list):
        return [pod for inner in thing for pod in _pod_templates(inner)]
    if not isinstance(thing, dict):
        return []
    found = [thing] if "containers" in thing.get("spec", {}) else []
    return found + [pod for inner in thing.values() for pod in _pod_templates(inner)]


# --- the program's environment ----------------------------------------------------------------------------------------


def test_the_pods_of_an_elastic_job_know_its_sizes() -> None:
    elastic = env_of(workers(job(elastic={"min": 1}))["containers"][0])
    assert {name: value for name, value in elastic.items() if name not in env_of(workers(job())["containers"][0])} == {
        "SPOTLADDER_SIZES": "1,2",
        "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "1",
        "RAY_TRAIN_PREEMPTION_POLL_INTERVAL_S": "0.5",
        "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": "1",
    }


def test_a_template_may_name_its_own_volume_as_the_cache() -> None:
    template = ray_template()
    own = {"name": "SPOTLADDER_CACHE", "value": "/nvme"}
    worker_spec(template)["containers"][0]["env"] = [own]
    assert env_of(workers(job(template))["containers"][0])["SPOTLADDER_CACHE"] == "/nvme"
    tier = {"overrides": {"env": {"SPOTLADDER_CACHE": "/nvme"}}}
    assert env_of(workers(job(tier=tier))["containers"][0])["SPOTLADDER_CACHE"] == "/nvme"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {}),
        (
            {"SPOTLADDER_COMPILED": "/nvme"},
            {"TORCHINDUCTOR_CACHE_DIR": "/nvme/torch", "TRITON_CACHE_DIR": "/nvme/triton"},
        ),
        (
            {"SPOTLADDER_COMPILED": "/nvme", "TRITON_CACHE_DIR": "/fsx"},
            {"TORCHINDUCTOR_CACHE_DIR": "/nvme/torch", "TRITON_CACHE_DIR": "/fsx"},
        ),
    ],
    ids=["default", "a folder", "a volume of its own"],
)
def test_the_frameworks_compile_into_the_folder_that_is_stored(own: dict[str, str], expected: dict[str, str]) -> None:
    template = ray_template()
    worker_spec(template)["containers"][0]["env"] = [{"name": name, "value": value} for name, value in own.items()]
    seen = env_of(workers(job(template))["containers"][0])
    names_of = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    assert {name: seen[name] for name in names_of if name in seen} == expected


def test_the_head_of_ray_checks_its_nodes_more_often_unless_the_template_says_otherwise() -> None:
    template = ray_template()
    variables = env_of(head(job(template))["containers"][0])
    period, timeout, times = (
        int(variables[f"RAY_health_check_{name}"]) for name in ("period_ms", "timeout_ms", "failure_threshold")
    )
    worst = times * (period + timeout) / 1000
    assert worst <= 35
    assert not [name for name in env_of(workers(job(template))["containers"][0]) if "health_check" in name]
    own = {"name": "RAY_health_check_timeout_ms", "value": "10000"}
    template["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] = [own]
    assert env_of(head(job(template))["containers"][0])["RAY_health_check_timeout_ms"] == "10000"


def test_precedence_of_environment_variables() -> None:
    template = ray_template()
    worker_spec(template)["containers"][0]["env"] = [
        {"name": "A", "value": "template"},
        {"name": "B", "value": "template"},
        {"name": "C", "value": "template"},
        {"name": "SPOTLADDER_ATTEMPT", "value": "99"},
    ]
    of = job(template, tier={"overrides": {"env": {"B": "tier", "C": "tier"}}})
    env = env_of(workers(of, env={"C": "controller"})["containers"][0])
    assert {key: env[key] for key in ("A", "B", "C", "SPOTLADDER_ATTEMPT")} == {
        "A": "template", "B": "tier", "C": "controller", "SPOTLADDER_ATTEMPT": "3",
    }  # fmt: skip


# --- end of a pod ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("notice", "grace", "drain"), [(120, 115, 110), (30, 25, 20), (0, 30, 25), (6, 5, 1)])
def test_the_drain_ends_before_the_grace_period_and_that_before_the_notice(notice: int, grace: int, drain: int) -> None:
    assert (grace_of(notice), drain_of(grace_of(notice), notice)) == (grace, drain)
    assert drain < grace
    assert not notice or grace < notice


# --- security --------------------------------------------------------------------------------------------------------


def with_container(**more: Any) -> TieredJob:
    template = ray_template()
    worker_spec(template)["containers"][0].update(more)
    return job(template)


@pytest.mark.parametrize(
    ("image", "user"),
    [
        ("rayproject/ray:2.58.1", 1000),
        ("docker.io/rayproject/ray-ml:2.58.1-gpu", 1000),
        ("rayproject/ray@sha256:0123", 1000),
        ("example.org/rayproject/ray-mine:1", None),
        ("localhost/ray:2.58", None),
    ],
)
def test_known_images_run_as_their_user(image: str, user: int | None) -> None:
    context = workers(with_container(image=image))["containers"][0]["securityContext"]
    assert context.get("runAsUser") == user
    assert context.get("runAsNonRoot") is (True if user else None)


def test_restricted_pods_meet_the_standard_in_every_container() -> None:
    template = ray_template()
    spec = worker_spec(template)
    spec["containers"] += [{"name": "proxy", "image": "example.org/proxy:1"}]
    spec["initContainers"] = [{"name": "fetch", "image": "example.org/fetch:1"}]
    found = workers(job(template, podSecurity="restricted"))
    for container in (*found["containers"], *found["initContainers"]):
        context = container["securityContext"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["allowPrivilegeEscalation"] is False
        assert context["runAsNonRoot"] is True


def test_restricted_settings_of_the_template_win() -> None:
    template = ray_template()
    given = {"allowPrivilegeEscalation": True, "capabilities": {"add": ["IPC_LOCK"]}, "runAsNonRoot": False}
    worker_spec(template)["containers"][0]["securityContext"] = given
    assert workers(job(template, podSecurity="restricted"))["containers"][0]["securityContext"] == given


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"privileged": True}, {"privileged": True}),
        ({"capabilities": {"add": ["IPC_LOCK"]}}, {"capabilities": {"add": ["IPC_LOCK"]}}),
        (
            {"allowPrivilegeEscalation": False},
            {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["NET_RAW", "MKNOD"]}},
        ),
    ],
)  # fmt: skip
def test_the_containers_own_security_context_is_kept(given: dict[str, Any], expected: dict[str, Any]) -> None:
    of = with_container(image="example.org/mine:1", securityContext=given)
    assert workers(of)["containers"][0]["securityContext"] == expected


def test_a_read_only_root_gets_a_tmp_volume() -> None:
    read_only, tmp = {"readOnlyRootFilesystem": True}, "/tmp"  # noqa: S108 – a path in the pod
    spec = workers(with_container(securityContext=read_only))
    assert {"name": "spotladder-tmp", "emptyDir": {}} in spec["volumes"]
    assert {"name": "spotladder-tmp", "mountPath": tmp} in spec["containers"][0]["volumeMounts"]
    own = [{"name": "mine", "mountPath": f"{tmp}/"}]
    spec = workers(with_container(securityContext=read_only, volumeMounts=own))
    assert all(volume["name"] != "spotladder-tmp" for volume in spec["volumes"])


# --- Kueue -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", [ray_template, jobset_template])
def test_the_tiers_queue_label_replaces_the_templates(template: Any) -> None:
    given = template()
    given["metadata"] = {"labels": {QUEUE: "other", "kueue.x-k8s.io/priority-class": "high"}}
    labels = rendered(job(given, tier={"queue": "team"}))["metadata"]["labels"]
    assert (labels[QUEUE], labels["kueue.x-k8s.io/priority-class"]) == ("team", "high")
    assert rendered(job(given))["metadata"]["labels"][QUEUE] == "other"
    assert QUEUE not in rendered(job(template()))["metadata"]["labels"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("shutdownAfterJobFinishes", False), ("deletionStrategy", {"deletionRules": []})],
)
def test_fields_that_kueue_refuses_are_rejected(field: str, value: Any) -> None:
    template = ray_template()
    template["spec"][field] = value
    error = rejection(job(template, tier={"queue": "team"}))
    assert error.path == f"{RAY}.{field}"
    assert "Kueue" in error.message
    rendered(job(template))


def test_a_changed_queue_changes_the_digest() -> None:
    before, after = digests_of(job()), digests_of(job(tier={"queue": "team"}))
    assert before["spot-a"] != after["spot-a"]
    assert digests_of(job(tier={"queueTimeout": "1h"})) == before


@pytest.mark.parametrize("template", [ray_template, jobset_template])
def test_avoided_nodes_are_excluded_by_affinity(template: Any) -> None:
    of = job(template())
    place = tier(of, extraSelectors={"pool": "a"}).avoiding(("n1", "n2"))
    made = workload_of(of).render(of, names.Origin("u-1"), place, 3, {})[-1]
    terms = worker_spec(made)["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    expected = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n1", "n2"]}
    assert expected in terms["nodeSelectorTerms"][0]["matchExpressions"]
