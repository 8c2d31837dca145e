"""Reports of provisioners and their effect on tiers; the status of each CapacityTier."""

from __future__ import annotations

import pytest

from spotladder.clusters.transport import Object
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world

NONE = "Failed to schedule pod, no instance type had enough resources or had a required offering, requirements=…"
ICE = "NodeClaim spot-x event: creating instance, insufficient capacity, with fleet error(s), …"


def tiers(kube: KubeWorld) -> list[Object]:
    limits = {"maxFailures": 1, "provisionTimeout": "10m", "onInsufficientCapacity": "fallback"}
    return [{"name": name, "capacityTier": f"{kube.namespace}-{name}", **limits} for name in ("spot-a", "on-demand")]


def claim(name: str) -> Object:
    """Karpenter deletes it within a second, so only its Event remains."""
    return {"kind": "NodeClaim", "metadata": {"name": name, "uid": f"uid-{name}"}}


@pytest.mark.parametrize(("source", "new_recorder"), [("eks-auto-mode/compute", False), ("karpenter", True)])
async def test_karpenters_failed_scheduling_falls_back_at_once(
    api_server: ApiServer, source: str, new_recorder: bool
) -> None:
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=tiers(kube))
        (pod, *_) = await kube.waiting(1)
        record = kube.record_new_event if new_recorder else kube.record_event
        await record("FailedScheduling", NONE, about={"kind": "Pod", **pod}, source=source)
        await eventually(lambda: kube.is_on("on-demand", 2))
        assert (await kube.status())["attempts"][0]["reason"] == "InsufficientCapacity"


async def test_a_nodeclaim_without_capacity_falls_back_at_once(api_server: ApiServer) -> None:
    """The Event is about a cluster-scoped object that is already deleted, and arrives before the pod's nomination."""
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=tiers(kube))
        (pod, *_) = await kube.waiting(1)
        name = f"{kube.namespace}-spot-nnjb2"
        await kube.record_event("InsufficientCapacityError", ICE, about=claim(name))
        await kube.idle()
        nominated = f"Pod should schedule on: nodeclaim/{name}"
        await kube.record_event("Nominated", nominated, about={"kind": "Pod", **pod})
        await eventually(lambda: kube.is_on("on-demand", 2))
