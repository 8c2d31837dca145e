"""A job in a queue of Kueue, on a real API server. The test writes the fields that Kueue 0.19.2 writes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from spotladder.clusters.client import Client
from spotladder.resources import APIResource
from spotladder.workloads.kueue import LOCAL_QUEUES, WORKLOADS
from spotladder.workloads.rayjob.records import RAYJOBS
from spotladder.workloads.records import QUEUE
from tests.kube.apiserver import ApiServer
from tests.kube.world import CRDS, KubeWorld, eventually, world

NO_ROOM = "couldn't assign flavors to pod set workers: insufficient unused quota for cpu in flavor spot, 1 more needed"
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@asynccontextmanager
async def kueue(client: Client) -> AsyncIterator[None]:
    """Kueue's CRDs without schemas and conversions. They are removed afterwards, so that other tests run without
    Kueue."""
    for kind in (WORKLOADS, LOCAL_QUEUES):
        name = f"{kind.plural}.{kind.group}"
        version = {
            "name": kind.version, "served": True, "storage": True, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
        }  # fmt: skip
        body = {
            "apiVersion": CRDS.api_version, "kind": CRDS.kind,
            "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
            "spec": {
                "group": kind.group, "scope": "Namespaced", "versions": [version],
                "names": {"plural": kind.plural, "kind": kind.kind},
            },
        }  # fmt: skip
        await client.apply(CRDS, body, force=True)
        await eventually(partial(client.exists, kind))
    try:
        yield
    finally:
        for kind in (WORKLOADS, LOCAL_QUEUES):
            await client.delete(CRDS, f"{kind.plural}.{kind.group}")


def body_of(kube: KubeWorld, kind: APIResource, name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": kube.namespace, **more.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


async def suspend(kube: KubeWorld, attempt: int, *, suspended: bool) -> None:
    name = (await kube.rayjob(attempt))["metadata"]["name"]
    await kube.client.merge(RAYJOBS, name, kube.namespace, body={"spec": {"suspend": suspended}})


async def workload(kube: KubeWorld, attempt: int, *conditions: dict[str, Any]) -> None:
    """Create or update Kueue's Workload of the attempt with these conditions."""
    rayjob = (await kube.rayjob(attempt))["metadata"]
    owner = {
        "apiVersion": RAYJOBS.api_version, "kind": RAYJOBS.kind, "name": rayjob["name"], "uid": rayjob["uid"],
        "controller": True,
    }  # fmt: skip
    name = f"rayjob-{rayjob['name']}-1f2e3"
    metadata, spec = {"ownerReferences": [owner]}, {"queueName": "team"}
    await kube.client.apply(WORKLOADS, body_of(kube, WORKLOADS, name, metadata=metadata, spec=spec))
    status = {"status": {"conditions": list(conditions)}}
    await kube.client.merge(WORKLOADS, name, kube.namespace, body=status, subresource="status")


async def test_a_job_waits_for_quota_is_admitted_and_is_preempted(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kueue(kube.client), kube.operator():
        tier = {"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "maxFailures": 1, "queue": "team"}
        await kube.submit(tiers=[tier])

        async def has_reason(kind: str, reason: str, text: str = "") -> bool:
            found = await kube.condition(kind)
            return found.get("reason") == reason and text in found.get("message", "")

        await eventually(lambda: has_reason("Degraded", "ReferencesMissing", "lacks LocalQueue team: create it there"))
        assert await kube.rayjobs() == []
        await kube.client.apply(LOCAL_QUEUES, body_of(kube, LOCAL_QUEUES, "team", spec={"clusterQueue": "all"}))
        await kube.pass_time(60)
        made = (await eventually(lambda: kube.rayjob(1)))["metadata"]
        assert made["labels"][QUEUE] == "team"

        await suspend(kube, 1, suspended=True)
        await kube.report(1, jobDeploymentStatus="Suspended")
        await workload(kube, 1, condition("QuotaReserved", "False", "Pending", NO_ROOM))
        await eventually(
            lambda: has_reason("Provisioned", "WaitingForQuota", f"Kueue holds the attempt in queue team: {NO_ROOM}")
        )
        assert (await kube.condition("Degraded"))["status"] == "False"
        await kube.pass_time(7200)
        status = await kube.status()
        assert (status["phase"], status["attempt"], status["failures"]) == ("Pending", 1, 0)

        await workload(kube, 1, condition("QuotaReserved", "False", "Inadmissible", "LocalQueue team doesn't exist"))
        await eventually(lambda: has_reason("Degraded", "Inadmissible", "LocalQueue team doesn't exist"))

        admitted = [condition(kind, "True", kind) for kind in ("QuotaReserved", "Admitted")]
        await suspend(kube, 1, suspended=False)
        await workload(kube, 1, *admitted)
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        await kube.program_starts(1)

        await workload(kube, 1, *admitted, condition("Evicted", "True", "Preempted", "Preempted to accommodate job 7"))

        async def evicted() -> bool:
            return "Kueue evicted the attempt" in (await kube.status()).get("message", "")

        await eventually(evicted)
        await kube.collect(1)
        await eventually(lambda: kube.is_on("spot-a", 2))
        status = await kube.status()
        assert (status["failures"], status["tiers"][0]["failures"]) == (0, 0)
        (ended,) = status["attempts"]
        assert (ended["reason"], ended["failures"]) == ("Preempted", 0)
        again = (await eventually(lambda: kube.rayjob(2)))["metadata"]
        assert again["labels"][QUEUE] == "team"
        assert "Preempted" in await kube.events()
        await kube.run(2)
        await kube.succeed(2)


async def test_a_suspended_attempt_without_a_queue_label_is_not_lost(api_server: ApiServer) -> None:
    """Kueue has `manageJobsWithoutQueueName`, and the controller may not read Workloads."""
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=[{"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a"}])
        await eventually(lambda: kube.rayjob(1))
        await suspend(kube, 1, suspended=True)
        await kube.report(1, jobDeploymentStatus="Suspended")

        async def waits() -> bool:
            return (await kube.condition("Provisioned")).get("reason") == "WaitingForQuota"

        await eventually(waits)
        await kube.pass_time(7200)
        status = await kube.status()
        assert (status["phase"], status["attempt"], status["failures"]) == ("Pending", 1, 0)


async def test_a_queue_without_kueue_holds_the_attempt_back(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=[{"name": "spot-a", "capacityTier": f"{kube.namespace}-spot-a", "queue": "team"}])

        async def reported() -> bool:
            found = await kube.condition("Degraded")
            return "install Kueue, or remove the queue" in found.get("message", "")

        await eventually(reported)
        assert await kube.rayjobs() == []
