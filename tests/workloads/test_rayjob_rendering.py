"""What is rendered for a Ray program: submission, probes, groups, and templates that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.tieredjob import TieredJob
from tests.workloads.builders import job, ray_template
from tests.workloads.rendering import RAY, refusal, rendered


def ray(**spec: Any) -> TieredJob:
    template = ray_template()
    template["spec"].update(spec)
    return job(template)


@pytest.mark.parametrize(
    ("given", "mode", "submitter"),
    [
        ({}, "HTTPMode", None),
        ({"submissionMode": "SidecarMode"}, "SidecarMode", None),
        ({"submissionMode": "K8sJobMode"}, "K8sJobMode", {"backoffLimit": 0}),
        ({"submitterConfig": {"backoffLimit": 5}}, "K8sJobMode", {"backoffLimit": 0}),
        ({"submitterPodTemplate": {"spec": {}}}, "K8sJobMode", {"backoffLimit": 0}),
    ],
)
def test_nobody_submits_twice(given: dict[str, Any], mode: str, submitter: dict[str, int] | None) -> None:
    spec = rendered(ray(**given))["spec"]
    assert (spec["submissionMode"], spec.get("submitterConfig"), spec["backoffLimit"]) == (mode, submitter, 0)


@pytest.mark.parametrize(
    ("given", "shutdown", "ttl"),
    [
        ({}, True, 60),
        ({"ttlSecondsAfterFinished": 5}, True, 5),
        ({"shutdownAfterJobFinishes": False}, False, None),
        ({"deletionStrategy": {"deletionRules": []}}, None, None),
    ],
)
def test_a_cluster_outlives_its_program_by_a_minute(
    given: dict[str, Any], shutdown: bool | None, ttl: int | None
) -> None:
    spec = rendered(ray(**given))["spec"]
    assert (spec.get("shutdownAfterJobFinishes"), spec.get("ttlSecondsAfterFinished")) == (shutdown, ttl)


def test_a_lost_head_is_not_brought_back() -> None:
    assert rendered(ray())["metadata"]["annotations"]["ray.io/disable-provisioned-head-restart"] == "true"


def probes(**cluster: Any) -> list[dict[str, Any] | None]:
    """How the head's and the workers' readiness is asked for."""
    found = rendered(broken(**cluster))["spec"]["rayClusterSpec"]
    groups = [found["headGroupSpec"], *found["workerGroupSpecs"]]
    return [group["template"]["spec"]["containers"][0].get("readinessProbe") for group in groups]


def test_a_node_of_ray_is_ready_as_soon_as_it_says_so() -> None:
    asked = probes()
    assert [probe and probe["httpGet"] for probe in asked] == [
        {"path": "/api/gcs_healthz", "port": 8265},
        {"path": "/api/local_raylet_healthz", "port": 52365},
    ]
    assert [probe and probe["initialDelaySeconds"] + probe["periodSeconds"] for probe in asked] == [3, 3]


@pytest.mark.parametrize(
    ("head", "worker", "ports"),
    [
        ({"dashboard-port": "8300"}, {"dashboard-agent-listen-port": "52400"}, [8300, 52400]),
        ({"dashboard-agent-listen-port": "52400"}, {}, [8265, 52365]),
        ({"dashboard-port": "$PORT"}, {}, [None, 52365]),
    ],
)
def test_ray_is_asked_where_it_listens(head: dict[str, str], worker: dict[str, str], ports: list[int | None]) -> None:
    cluster = ray_template()["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["rayStartParams"] = head
    cluster["workerGroupSpecs"][0]["rayStartParams"] = worker
    assert [probe and probe["httpGet"]["port"] for probe in probes(**cluster)] == ports


def test_the_templates_own_probe_and_that_of_a_cluster_with_tokens_are_kept() -> None:
    own = {"tcpSocket": {"port": 6379}}
    cluster = ray_template()["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["template"]["spec"]["containers"][0]["readinessProbe"] = own
    assert probes(**cluster)[0] == own
    assert probes(authOptions={"mode": "token"}) == [None, None]  # a probe has no token


def broken(**changes: Any) -> TieredJob:
    template = ray_template()
    template["spec"]["rayClusterSpec"].update(changes)
    return job(template)


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (ray(submissionMode="InteractiveMode"), f"{RAY}.submissionMode"),
        (broken(headGroupSpec=None), f"{RAY}.rayClusterSpec.headGroupSpec"),
        (broken(headGroupSpec={}), f"{RAY}.rayClusterSpec.headGroupSpec.template.spec.containers"),
        (
            broken(workerGroupSpecs=[{"groupName": "w", "replicas": 1, "template": {"spec": {"containers": []}}}]),
            f"{RAY}.rayClusterSpec.workerGroupSpecs[0].template.spec.containers",
        ),
    ],
)
def test_a_ray_template_that_runs_on_no_cluster(of: TieredJob, path: str) -> None:
    assert refusal(of).path == path


def test_groups_without_name_get_one() -> None:
    group = ray_template()["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]
    nameless = {key: value for key, value in group.items() if key != "groupName"}
    groups = rendered(broken(workerGroupSpecs=[nameless, nameless]))["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    assert [group["groupName"] for group in groups] == ["workers", "workers-1"]
