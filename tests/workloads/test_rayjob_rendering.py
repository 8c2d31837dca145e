"""Rendering of RayJobs: submission, probes, groups, rejected templates."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.tieredjob import TieredJob
from tests.workloads.builders import job, ray_template
from tests.workloads.rendering import RAY, rejection, rendered


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
def test_the_program_is_submitted_only_once(given: dict[str, Any], mode: str, submitter: dict[str, int] | None) -> None:
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
def test_kuberay_deletes_the_raycluster_one_minute_after_the_program(
    given: dict[str, Any], shutdown: bool | None, ttl: int | None
) -> None:
    spec = rendered(ray(**given))["spec"]
    assert (spec.get("shutdownAfterJobFinishes"), spec.get("ttlSecondsAfterFinished")) == (shutdown, ttl)


def probes(**cluster: Any) -> list[dict[str, Any] | None]:
    """The readiness probes of the head and of the workers."""
    found = rendered(with_cluster(**cluster))["spec"]["rayClusterSpec"]
    groups = [found["headGroupSpec"], *found["workerGroupSpecs"]]
    return [group["template"]["spec"]["containers"][0].get("readinessProbe") for group in groups]


@pytest.mark.parametrize(
    ("head", "worker", "ports"),
    [
        ({"dashboard-port": "8300"}, {"dashboard-agent-listen-port": "52400"}, [8300, 52400]),
        ({"dashboard-agent-listen-port": "52400"}, {}, [8265, 52365]),
        ({"dashboard-port": "$PORT"}, {}, [None, 52365]),
    ],
)
def test_probes_use_the_ports_of_ray_start_params(
    head: dict[str, str], worker: dict[str, str], ports: list[int | None]
) -> None:
    cluster = ray_template()["spec"]["rayClusterSpec"]
    cluster["headGroupSpec"]["rayStartParams"] = head
    cluster["workerGroupSpecs"][0]["rayStartParams"] = worker
    assert [probe and probe["httpGet"]["port"] for probe in probes(**cluster)] == ports


def test_probes_are_kuberays_where_ray_requires_a_token_for_its_health() -> None:
    assert probes(authOptions={"mode": "token"}, rayVersion="2.55.0") == [None, None]
    assert None not in probes(authOptions={"mode": "token"}, rayVersion="2.58.0")
    assert None not in probes(authOptions={"mode": "disabled"}, rayVersion="2.55.0")


def authenticated(version: str | None, image: str, **cluster: Any) -> tuple[Any, Any]:
    head = {"template": {"spec": {"containers": [{"name": "ray", "image": image}]}}}
    found = rendered(with_cluster(rayVersion=version, headGroupSpec=head, **cluster))["spec"]["rayClusterSpec"]
    return found.get("authOptions"), found.get("rayVersion")


TOKEN = {"mode": "token", "secretName": "spotladder-ray-token"}


@pytest.mark.parametrize(
    ("version", "image", "expected"),
    [
        ("2.58.0", "acme/train:7", (TOKEN, "2.58.0")),
        ("2.60.1", "acme/train:7", (TOKEN, "2.60.1")),
        ("2.58", "acme/train:7", (TOKEN, "2.58")),
        (None, "rayproject/ray:2.58.1-py312", (TOKEN, "2.58.1")),
        (None, "ghcr.io/mirror/rayproject/ray-ml:2.60.0-gpu", (TOKEN, "2.60.0")),
        pytest.param(None, "acme/train:3.1.4", (None, None), id="the version of something else"),
        pytest.param("nightly", "rayproject/ray:2.58.1", (None, "nightly"), id="a version that is no number"),
        ("2.57.0", "rayproject/ray:2.58.1", (None, "2.57.0")),
        (None, "rayproject/ray:2.52.0", (None, None)),
    ],
)
def test_a_tested_version_of_ray_requires_a_token(version: str | None, image: str, expected: tuple[Any, Any]) -> None:
    assert authenticated(version, image) == expected


def with_cluster(**changes: Any) -> TieredJob:
    template = ray_template()
    template["spec"]["rayClusterSpec"].update(changes)
    return job(template)


@pytest.mark.parametrize(
    ("of", "path"),
    [
        (ray(submissionMode="InteractiveMode"), f"{RAY}.submissionMode"),
        (with_cluster(headGroupSpec=None), f"{RAY}.rayClusterSpec.headGroupSpec"),
        (with_cluster(headGroupSpec={}), f"{RAY}.rayClusterSpec.headGroupSpec.template.spec.containers"),
        (
            with_cluster(
                workerGroupSpecs=[{"groupName": "w", "replicas": 1, "template": {"spec": {"containers": []}}}]
            ),
            f"{RAY}.rayClusterSpec.workerGroupSpecs[0].template.spec.containers",
        ),
    ],
)
def test_invalid_ray_templates_are_rejected(of: TieredJob, path: str) -> None:
    assert rejection(of).path == path
