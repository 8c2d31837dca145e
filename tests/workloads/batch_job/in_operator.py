"""Jobs of the third kind in the operator. `test_third_kind` runs this file with the kind registered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from spotladder.api.crds import crds
from spotladder.api.workload import Workload
from spotladder.clusters.errors import NotFound
from spotladder.resources import NODES, PODS, TIEREDJOBS
from spotladder.workloads import names
from tests.kube.world import KubeWorld
from tests.operator.memory_world import NAMESPACE, world_in_memory
from tests.workloads.batch_job.kind import JOBS

JOB, WORKERS = "digits", 2
TEMPLATE = {
    "spec": {
        "parallelism": WORKERS,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}},
    }
}


@dataclass
class BatchJobRig:
    """A TieredJob of the third kind, the operator, and an API server in memory."""

    kube: KubeWorld

    async def reconcile(self) -> dict[str, Any]:
        """Reconcile until nothing is due; the job's status."""
        for _ in range(5):
            await self.kube.pass_time(1)
        return await self.kube.status(JOB)

    async def jobs(self) -> list[dict[str, Any]]:
        return [job async for page in self.kube.client.pages(JOBS, NAMESPACE) for job in page.items]

    async def bring_up(self, job: dict[str, Any]) -> None:
        """The Job's controller creates its pods; each gets a node and becomes ready."""
        name, labels = job["metadata"]["name"], job["spec"]["template"]["metadata"]["labels"]
        for index in range(WORKERS):
            pod, node = f"{name}-{index}", await self.kube.node(f"{name}-{index}-node")
            metadata = {"name": pod, "namespace": NAMESPACE, "labels": labels}
            spec = {**job["spec"]["template"]["spec"], "nodeName": node}
            await self.kube.client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
            conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
            await self.kube.set_pod(pod, phase="Running", conditions=conditions)

    async def lose(self, job: dict[str, Any]) -> None:
        """The node of the Job's first pod is reclaimed."""
        await self.kube.client.delete(NODES, f"{job['metadata']['name']}-0-node")

    async def collect(self, job: dict[str, Any]) -> None:
        """The garbage collector removes the pods of a deleted Job."""
        for index in range(WORKERS):
            with suppress(NotFound):
                await self.kube.client.delete(PODS, f"{job['metadata']['name']}-{index}", NAMESPACE, grace=0)

    async def complete(self, job: dict[str, Any]) -> None:
        status = {"conditions": [{"type": "Complete", "status": "True"}]}
        name = job["metadata"]["name"]
        await self.kube.client.merge(JOBS, name, NAMESPACE, body={"status": status}, subresource="status")


@asynccontextmanager
async def rig() -> AsyncIterator[BatchJobRig]:
    kube = world_in_memory()
    await kube.make_namespace()
    for tier in ("spot-a", "spot-b"):
        await kube.capacity(tier)
    tiers = [
        {"name": tier, "capacityTier": f"{NAMESPACE}-{tier}", "maxFailures": 0, "provisionTimeout": "10m"}
        for tier in ("spot-a", "spot-b")
    ]
    await kube.submit(JOB, tiers=tiers, workload={"batch": {"template": TEMPLATE}})
    async with kube.operator():
        yield BatchJobRig(kube)


async def test_a_job_of_a_third_kind_falls_back_and_succeeds() -> None:
    async with rig() as world:
        await world.reconcile()
        (first,) = await world.jobs()
        assert first["metadata"]["labels"][names.ATTEMPT] == "1"
        assert first["metadata"]["labels"][names.TIER] == "spot-a"
        container = first["spec"]["template"]["spec"]["containers"][0]
        assert {"name": "SPOTLADDER_ATTEMPT", "value": "1"} in container["env"]

        await world.bring_up(first)
        assert (await world.reconcile())["phase"] == "Running"

        await world.lose(first)
        await world.reconcile()
        await world.kube.clock.advance(120.0)
        await world.collect(first)
        status = await world.reconcile()
        (second,) = await world.jobs()
        assert (status["tier"], status["attempt"], second["metadata"]["labels"][names.ATTEMPT]) == ("spot-b", 2, "2")

        await world.bring_up(second)
        await world.reconcile()
        await world.complete(second)
        assert (await world.reconcile())["phase"] == "Succeeded"


async def test_deleting_a_job_of_a_third_kind_deletes_all_its_objects() -> None:
    async with rig() as world:
        await world.reconcile()
        (first,) = await world.jobs()
        await world.bring_up(first)
        await world.reconcile()

        await world.kube.delete(JOB)
        for _ in range(5):
            await world.kube.clock.advance(60.0)
            with suppress(NotFound):
                await world.reconcile()
            if not await world.jobs():
                await world.collect(first)
        assert await world.jobs() == []
        assert world.kube.client.server.objects(TIEREDJOBS) == {}  # type: ignore[attr-defined]


def test_the_error_for_a_job_without_a_workload_names_every_kind() -> None:
    with pytest.raises(ValidationError, match="needs exactly one of ray, jobSet and batch"):
        Workload()


def test_the_resource_definition_has_the_kind() -> None:
    job = next(found for found in crds() if found["spec"]["names"]["kind"] == "TieredJob")
    schema = job["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["workload"]
    assert schema["description"] == "Program of the job: exactly one of ray, jobSet and batch."
    assert schema["properties"]["batch"]["description"] == "A program without Ray (Job)."
    assert schema["properties"]["batch"]["properties"]["template"]["required"] == ["spec"]
    assert schema["x-kubernetes-validations"] == [
        {
            "rule": "[has(self.ray), has(self.jobSet), has(self.batch)].filter(given, given).size() == 1",
            "message": "needs exactly one of ray, jobSet and batch",
        },
        {
            "rule": "has(self.ray) == has(oldSelf.ray) && has(self.jobSet) == has(oldSelf.jobSet)",
            "message": "cannot change from ray to jobSet or batch or back",
        },
    ]
