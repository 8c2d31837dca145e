"""Containers beside the program: what they do neither ends nor keeps an attempt, on an API server in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.kube import jobset
from tests.kube.world import KubeWorld, eventually, ray_spec
from tests.operator.memory_world import filled_world
from tests.workloads.builders import jobset_template, status, worker_spec

READY = {"type": "PodScheduled", "status": "True"}
UNREADY = [READY, {"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "False"}]
SHIPPER = {"name": "shipper", "image": "example.org/shipper:1"}


@pytest.fixture
async def kube() -> AsyncIterator[KubeWorld]:
    async with filled_world() as found, found.operator():
        yield found


def jobset_with(*others: dict[str, Any]) -> dict[str, Any]:
    template = jobset_template()
    worker_spec(template)["containers"].extend(others)
    return {"jobSet": {"template": template}}


async def show(kube: KubeWorld, pod: str, *containers: dict[str, Any], phase: str = "Running") -> None:
    """The pod has these containers, of which one is not ready."""
    statuses = [{"image": "x", "imageID": "", "restartCount": 0, **entry} for entry in containers]
    await kube.set_pod(pod, phase=phase, conditions=UNREADY, containerStatuses=statuses)


async def running_set(kube: KubeWorld) -> list[str]:
    """A JobSet of two pods with a log shipper in each."""
    await kube.submit(workload=jobset_with(SHIPPER))
    await jobset.run(kube, 1)
    await eventually(lambda: kube.has_phase("Running"))
    return [pod["metadata"]["name"] for pod in await kube.pods(1)]


async def test_a_log_shipper_that_fails_does_not_touch_a_jobset(kube: KubeWorld) -> None:
    first, _ = await running_set(kube)
    await show(kube, first, status("train"), status("shipper", 1))
    await kube.idle()
    await kube.pass_time(300)
    found = await kube.status()
    assert (found["phase"], found.get("failures", 0), found.get("attempts", [])) == ("Running", 0, [])
    degraded = await kube.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "SidecarFailed")
    assert degraded["message"] == f"{first}: container shipper ended with exit code 1; the program runs on"


async def test_a_sidecar_that_never_ends_does_not_keep_a_finished_jobset(kube: KubeWorld) -> None:
    for pod in await running_set(kube):
        await show(kube, pod, status("train", 0), status("shipper"))
    await eventually(lambda: kube.has_phase("Succeeded"))

    async def removed() -> bool:
        """The API server in memory has no kubelet, which would remove the pods."""
        return all("deletionTimestamp" in pod["metadata"] for pod in await kube.pods(1))

    await eventually(removed)


async def test_a_pod_whose_program_was_killed_is_removed_although_its_sidecar_runs_on(kube: KubeWorld) -> None:
    """JobSet then restarts the set, as after any loss."""
    first, second = await running_set(kube)
    await show(kube, first, status("train", 137), status("shipper"))

    async def removed() -> list[str]:
        pods = await kube.pods(1)
        return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" in pod["metadata"]]

    assert await eventually(removed) == [first]
    found = await kube.status()
    assert (found["failures"], found["attempt"]) == (1, 1)
    assert second not in await removed()


async def test_a_program_that_fails_is_named_with_its_pod_and_container(kube: KubeWorld) -> None:
    first, _ = await running_set(kube)
    await show(kube, first, status("train", 3), status("shipper"))
    await kube.idle()
    await kube.pass_time(60)
    found = await kube.status()
    assert (found["phase"], found["attempts"][0]["reason"]) == ("Failed", "ApplicationFailed")
    assert f"{first}, container train: exit code 3" in found["message"]


async def test_a_template_that_does_not_show_its_program_is_refused(kube: KubeWorld) -> None:
    await kube.submit(workload=jobset_with({**SHIPPER, "command": ["ship"]}))

    async def refused() -> str:
        found = await kube.condition("Valid")
        return str(found["message"]) if found.get("reason") == "InvalidSpec" else ""

    message = await eventually(refused)
    assert 'add the annotation kubectl.kubernetes.io/default-container: "NAME"' in message
    assert "one of train, shipper" in message


def ray_with(*others: dict[str, Any]) -> dict[str, Any]:
    spec = ray_spec()
    worker_spec({"spec": spec})["containers"].extend(others)
    return {"ray": {"template": {"spec": spec}}}


async def worker(kube: KubeWorld) -> tuple[str, str]:
    """The name of a worker's pod, and of its program container."""
    pods = await kube.pods(1)
    pod = next(pod for pod in pods if pod["metadata"]["labels"]["spotladder.io/role"] == "worker")
    return pod["metadata"]["name"], pod["spec"]["containers"][0]["name"]


async def test_the_second_container_of_a_ray_worker_fails_and_training_goes_on(kube: KubeWorld) -> None:
    await kube.submit(workload=ray_with(SHIPPER))
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))
    pod, program = await worker(kube)
    await show(kube, pod, status(program), status("shipper", 1))
    await kube.idle()
    await kube.pass_time(300)
    found = await kube.status()
    assert (found["phase"], found["attempt"], found.get("failures", 0)) == ("Running", 1, 0)


async def test_a_container_that_dies_before_kuberay_submits_the_program_is_named_at_once(kube: KubeWorld) -> None:
    await kube.submit(workload=ray_with(SHIPPER))
    await eventually(lambda: kube.rayjob(1))
    for role, index in (("head", 0), ("worker", 0), ("worker", 1)):
        await kube.pod(1, role, index)
    await kube.report(1, jobDeploymentStatus="Initializing")
    pod, program = await worker(kube)
    await show(kube, pod, status(program), status("shipper", 1))

    async def ended() -> Any:
        return (await kube.status()).get("attempts")

    (first,) = await eventually(ended)
    assert (first["reason"], (await kube.status()).get("failures", 0)) == ("StartCrashed", 0)
    degraded = await kube.condition("Degraded")
    assert degraded["reason"] == "CrashLoop"
    assert "container shipper of the worker ended with exit code 1" in degraded["message"]
    assert "KubeRay submits the program when all containers of every pod are ready" in degraded["message"]
