"""Reports of provisioners and their effect on tiers; the status of each CapacityTier."""

from __future__ import annotations

import pytest

from spotladder.clusters.transport import Object
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from spotladder.resources import CAPACITYTIERS
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world

NONE = "Failed to schedule pod, no instance type had enough resources or had a required offering, requirements=…"
ICE = "NodeClaim spot-x event: creating instance, insufficient capacity, with fleet error(s), …"


def tiers(kube: KubeWorld, *, asks: str = "fallback") -> list[Object]:
    limits = {"maxFailures": 1, "provisionTimeout": "10m", "onInsufficientCapacity": asks}
    return [{"name": name, "capacityTier": f"{kube.namespace}-{name}", **limits} for name in ("spot-a", "on-demand")]


def claim(name: str) -> Object:
    """Karpenter deletes it within a second, so only its Event remains."""
    return {"kind": "NodeClaim", "metadata": {"name": name, "uid": f"uid-{name}"}}


@pytest.mark.parametrize(
    ("source", "new_recorder"), [("karpenter", False), ("eks-auto-mode/compute", False), ("karpenter", True)]
)
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


@pytest.mark.parametrize("refused_first", [True, False])
async def test_a_nodeclaim_without_capacity_falls_back_at_once(api_server: ApiServer, refused_first: bool) -> None:
    """The Event is about a cluster-scoped object that is already deleted, and may arrive before the pod's
    nomination."""
    async with world(api_server) as kube, kube.operator():
        await kube.submit(tiers=tiers(kube))
        (pod, *_) = await kube.waiting(1)
        name = f"{kube.namespace}-spot-nnjb2"
        nominated = ("Nominated", f"Pod should schedule on: nodeclaim/{name}")
        if refused_first:
            await kube.record_event("InsufficientCapacityError", ICE, about=claim(name))
            await kube.idle()
            await kube.record_event(*nominated, about={"kind": "Pod", **pod})
        else:
            await kube.record_event(*nominated, about={"kind": "Pod", **pod})
            await kube.idle()
            assert await kube.is_on("spot-a", 1)
            await kube.record_event("InsufficientCapacityError", ICE, about=claim(name))
        await eventually(lambda: kube.is_on("on-demand", 2))


async def tier_status(kube: KubeWorld, tier: str) -> Object:
    """The status of a CapacityTier."""
    return (await kube.client.get(CAPACITYTIERS, f"{kube.namespace}-{tier}")).get("status") or {}


async def tier_condition(kube: KubeWorld, tier: str, kind: str, status: str, reason: str) -> Object:
    async def matches() -> Object | None:
        await kube.clock.advance(WRITE_INTERVAL)
        conditions: list[Object] = (await tier_status(kube, tier)).get("conditions") or []
        found = next((condition for condition in conditions if condition["type"] == kind), {})
        return found if (found.get("status"), found.get("reason")) == (status, reason) else None

    return dict(await eventually(matches))


async def test_the_status_of_a_capacity_tier_has_its_use_and_availability(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator():
        await tier_condition(kube, "spot-a", "Available", "Unknown", "NotAsked")
        await tier_condition(kube, "spot-a", "Valid", "True", "Valid")
        await tier_condition(kube, "spot-a", "Priced", "True", "Known")
        await kube.submit(tiers=tiers(kube))
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        await kube.program_starts(1)
        await tier_condition(kube, "spot-a", "Available", "True", "Had")
        status = await tier_status(kube, "spot-a")
        assert (status["jobsInUse"], status["nodesInUse"], status["attempts"], status["availability"]) == (
            1, 2, 1, "1.000",
        )  # fmt: skip
        assert (status["price"], status["onDemandPrice"]) == ("1.0000", "4.0000")
        await kube.pass_time(540)
        await kube.kill_worker(1)
        await kube.kill_worker(1)
        await eventually(lambda: kube.is_on("on-demand", 2))
        await kube.collect(1)

        async def counted() -> Object | None:
            await kube.clock.advance(WRITE_INTERVAL)
            found = await tier_status(kube, "spot-a")
            used = (found["jobsInUse"], found["nodesInUse"])
            return (
                found if found["evictions"] == 2 and used == (0, 0) else None
            )  # The status may be written while the attempt ends.

        status = await eventually(counted)
        assert 0.3 <= float(status["observedHours"]) < 0.4
        assert 5 < float(status["evictionsPerNodeHour"]) < 7
        await kube.waiting(2)
        await kube.pass_time(605)
        await tier_condition(kube, "on-demand", "Available", "False", "InsufficientCapacity")
        status = await tier_status(kube, "on-demand")
        assert (status["refusals"], status["availability"]) == (1, "0.000")
        assert status["lastUnavailableAt"]
