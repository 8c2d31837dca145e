"""Which container of a pod template, and of a pod, runs the program."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.api.problems import Path
from spotladder.errors import InvalidSpec
from spotladder.workloads.program_container import DEFAULT_CONTAINER, program_of, ray_of
from tests.workloads.builders import job, jobset_template, ray_template, worker_spec
from tests.workloads.rendering import SET, env_of, rejection, workers

AT: Path = ("spec", "template")
GPU = {"resources": {"limits": {"nvidia.com/gpu": 8}}}
COMMAND = {"command": ["torchrun", "train.py"]}


def one(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": f"example.org/{name}:1", **more}


def template(*containers: dict[str, Any], default: str = "", native: tuple[str, ...] = ()) -> dict[str, Any]:
    annotations = {DEFAULT_CONTAINER: default} if default else {}
    initial = [one(name, restartPolicy="Always") for name in native]
    return {"metadata": {"annotations": annotations}, "spec": {"containers": [*containers], "initContainers": initial}}


TRAINER = one("trainer", **COMMAND)
AMBIGUOUS = [
    pytest.param(template(one("a"), one("b")), id="nothing tells them apart"),
    pytest.param(template(TRAINER, one("fluent-bit", args=["-c", "x"])), id="both have a command"),
    pytest.param(template(one("a"), one("b", **COMMAND)), id="the second has a command: maybe it is the sidecar"),
    pytest.param(template(one("a", **GPU), one("b", **GPU)), id="both have GPUs"),
    pytest.param(template(one("a", **COMMAND, **GPU), one("b", **GPU)), id="both have GPUs, one a command"),
    pytest.param(template(one("ray-head"), one("ray")), id="both have a name of Ray"),
    pytest.param(
        template(one("a", resources={"limits": {"nvidia.com/gpu": "0"}}), one("b")), id="a request for zero GPUs"
    ),
]


@pytest.mark.parametrize("given", AMBIGUOUS)
def test_an_ambiguous_template_is_refused_with_the_annotation_to_add(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match=DEFAULT_CONTAINER) as error:
        program_of(given, AT)
    assert error.value.path == "spec.template.metadata.annotations"
    names = [container["name"] for container in given["spec"]["containers"]]
    assert ", ".join(names) in str(error.value)


@pytest.mark.parametrize("named", ["missing", "istio-proxy"])
@pytest.mark.parametrize("resolve", [program_of, ray_of])
def test_an_annotation_must_name_a_container(resolve: Any, named: str) -> None:
    with pytest.raises(InvalidSpec, match="names no container of the pod, expected one of a, b"):
        resolve(template(one("a"), one("b"), default=named, native=("istio-proxy",)), AT)


@pytest.mark.parametrize("spec", [{}, {"containers": []}, {"containers": None}])
def test_a_template_without_containers_is_refused(spec: dict[str, Any]) -> None:
    for resolve in (program_of, ray_of):
        with pytest.raises(InvalidSpec, match="is required on a cluster: a list of containers"):
            resolve({"spec": spec}, AT)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (template(one("a"), one("b")), "a"),
        (template(one("a", **GPU), one("b", **COMMAND)), "a"),
        (template(one("gcsfuse"), one("ray-worker")), "ray-worker"),
        (template(one("gcsfuse"), one("b"), default="b"), "b"),
    ],
    ids=["KubeRay takes the first", "the first has GPUs", "Ray's name", "annotation"],
)
def test_ray_runs_in_the_first_container_unless_another_is_named(given: dict[str, Any], expected: str) -> None:
    assert ray_of(given, AT)["name"] == expected


def test_a_ray_template_whose_gpus_are_not_in_the_first_container_is_refused() -> None:
    with pytest.raises(InvalidSpec, match='KubeRay runs Ray in the first container, "gcsfuse", but only "b"'):
        ray_of(template(one("gcsfuse"), one("b", **GPU)), AT)


# --- the rendered attempt ---


def test_the_container_of_ray_is_rendered_first() -> None:
    given = ray_template()
    sidecar = one("gke-gcsfuse-sidecar")
    worker_spec(given)["containers"].insert(0, sidecar)
    containers = workers(job(given))["containers"]
    assert [container["name"] for container in containers] == ["ray-worker", "gke-gcsfuse-sidecar"]
    assert containers[1] == sidecar
    assert "readinessProbe" in containers[0]


def test_only_the_program_container_gets_what_the_tier_and_the_store_give() -> None:
    given = jobset_template()
    sidecar = one("gke-gcsfuse-sidecar")
    pods = given["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pods["metadata"] = {"annotations": {DEFAULT_CONTAINER: "train"}}
    pods["spec"]["containers"].insert(0, dict(sidecar))
    of = job(
        given,
        tier={"overrides": {"image": "example.org/train:spot", **GPU}},
        checkpoints={"uri": "s3://b/p", "credentials": {"secretName": "bucket"}, "cache": "1Gi"},
    )
    first, program = workers(of, {"EXTRA": "1"})["containers"]
    assert first == sidecar
    assert program["image"] == "example.org/train:spot"
    assert program["resources"]["limits"] == {"nvidia.com/gpu": "8"}
    assert program["envFrom"] == [{"secretRef": {"name": "bucket"}}]
    assert {"SPOTLADDER_JOB", "EXTRA", "RANK", "MASTER_ADDR"} <= env_of(program).keys()
    assert len(program["volumeMounts"]) == 2
    assert program["securityContext"]


def test_an_ambiguous_pod_is_refused_with_its_path() -> None:
    given = jobset_template()
    worker_spec(given)["containers"] = [one("a"), one("b")]
    error = rejection(job(given))
    assert error.path == f"{SET}.replicatedJobs[0].template.spec.template.metadata.annotations"
