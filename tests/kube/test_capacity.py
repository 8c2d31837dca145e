"""Reports of provisioners and their effect on tiers; the status of each CapacityTier."""

from __future__ import annotations

import pytest

from spotladder.api.capacitytier import PriceSource
from spotladder.clusters.transport import Object
from spotladder.core.model import Price
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from spotladder.resources import CAPACITYTIERS
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, ray_spec, world

NONE = "Failed to schedule pod, no instance type had enough resources or had a required offering, requirements=…"
ICE = "NodeClaim spot-x event: creating instance, insufficient capacity, with fleet error(s), …"


def tiers(here: KubeWorld, *, asks: str = "fallback") -> list[Object]:
    limits = {"maxFailures": 1, "provisionTimeout": "10m", "onInsufficientCapacity": asks}
    return [{"name": name, "capacityTier": f"{here.namespace}-{name}", **limits} for name in ("spot-a", "on-demand")]


def claim(name: str) -> Object:
    """Karpenter deletes it within a second, so only its Event remains."""
    return {"kind": "NodeClaim", "metadata": {"name": name, "uid": f"uid-{name}"}}


@pytest.mark.parametrize(
    ("source", "new_recorder"), [("karpenter", False), ("eks-auto-mode/compute", False), ("karpenter", True)]
)
async def test_karpenters_failed_scheduling_falls_back_at_once(
    api_server: ApiServer, source: str, new_recorder: bool
) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here))
        (pod, *_) = await here.waiting(1)
        record = here.record_new_event if new_recorder else here.record_event
        await record("FailedScheduling", NONE, about={"kind": "Pod", **pod}, source=source)
        await eventually(lambda: here.is_on("on-demand", 2))
        assert (await here.status())["attempts"][0]["reason"] == "InsufficientCapacity"


@pytest.mark.parametrize("refused_first", [True, False])
async def test_a_nodeclaim_without_capacity_falls_back_at_once(api_server: ApiServer, refused_first: bool) -> None:
    """The Event is about a cluster-scoped object that is already deleted, and may arrive before the pod's
    nomination."""
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here))
        (pod, *_) = await here.waiting(1)
        name = f"{here.namespace}-spot-nnjb2"
        nominated = ("Nominated", f"Pod should schedule on: nodeclaim/{name}")
        if refused_first:
            await here.record_event("InsufficientCapacityError", ICE, about=claim(name))
            await here.idle()
            await here.record_event(*nominated, about={"kind": "Pod", **pod})
        else:
            await here.record_event(*nominated, about={"kind": "Pod", **pod})
            await here.idle()
            assert await here.is_on("spot-a", 1)
            await here.record_event("InsufficientCapacityError", ICE, about=claim(name))
        await eventually(lambda: here.is_on("on-demand", 2))


async def test_with_wait_a_tier_falls_back_only_after_its_timeout(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here, asks="wait"))
        (pod, *_) = await here.waiting(1)
        await here.record_event("FailedScheduling", NONE, about={"kind": "Pod", **pod})
        await here.pass_time(590)
        assert await here.is_on("spot-a", 1)
        await here.pass_time(15)
        await eventually(lambda: here.is_on("on-demand", 2))


async def test_events_about_other_objects_are_ignored(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here))
        (pod, *_) = await here.waiting(1)
        mine: Object = {"kind": "Pod", **pod}
        stranger: Object = {"kind": "Pod", "metadata": {"name": "x", "namespace": here.namespace, "uid": "uid-x"}}
        earlier: Object = {"kind": "Pod", "metadata": {**pod["metadata"], "uid": "of-an-earlier-pod-of-this-name"}}
        await here.record_event("FailedScheduling", NONE, about=stranger)
        await here.record_event("FailedScheduling", NONE, about=earlier)
        await here.record_event("FailedScheduling", NONE, about=mine, source="default-scheduler")
        await here.record_event(
            "FailedScheduling", "Failed to schedule pod, no instance type has enough resources", about=mine
        )
        await here.record_event("InsufficientCapacityError", ICE, about=claim(f"{here.namespace}-of-another-tier"))
        await here.pass_time(60)
        assert await here.is_on("spot-a", 1)


async def test_a_lack_of_capacity_does_not_affect_the_next_attempt(api_server: ApiServer) -> None:
    """The next attempt has new pods, which have no such Event."""
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here), exhausted="Restart")
        (pod, *_) = await here.waiting(1)
        await here.record_event("FailedScheduling", NONE, about={"kind": "Pod", **pod})
        await eventually(lambda: here.is_on("on-demand", 2))
        await here.collect(1)
        await here.waiting(2)
        await here.pass_time(60)
        assert await here.is_on("on-demand", 2)


async def tier_status(here: KubeWorld, tier: str) -> Object:
    """The status of a CapacityTier."""
    return (await here.client.get(CAPACITYTIERS, f"{here.namespace}-{tier}")).get("status") or {}


async def tier_condition(here: KubeWorld, tier: str, kind: str, status: str, reason: str) -> Object:
    async def matches() -> Object | None:
        await here.clock.advance(WRITE_INTERVAL)
        conditions: list[Object] = (await tier_status(here, tier)).get("conditions") or []
        found = next((condition for condition in conditions if condition["type"] == kind), {})
        return found if (found.get("status"), found.get("reason")) == (status, reason) else None

    return dict(await eventually(matches))


async def test_the_status_of_a_capacity_tier_has_its_use_and_availability(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await tier_condition(here, "spot-a", "Available", "Unknown", "NotAsked")
        await tier_condition(here, "spot-a", "Valid", "True", "Valid")
        await tier_condition(here, "spot-a", "Priced", "True", "Known")
        await here.submit(tiers=tiers(here))
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        await tier_condition(here, "spot-a", "Available", "True", "Had")
        status = await tier_status(here, "spot-a")
        assert (status["jobsInUse"], status["nodesInUse"], status["attempts"], status["availability"]) == (
            1, 2, 1, "1.000",
        )  # fmt: skip
        assert (status["price"], status["onDemandPrice"]) == ("1.0000", "4.0000")
        await here.pass_time(540)
        await here.kill_worker(1)
        await here.kill_worker(1)
        await eventually(lambda: here.is_on("on-demand", 2))
        await here.collect(1)

        async def counted() -> Object | None:
            await here.clock.advance(WRITE_INTERVAL)
            found = await tier_status(here, "spot-a")
            used = (found["jobsInUse"], found["nodesInUse"])
            return (
                found if found["evictions"] == 2 and used == (0, 0) else None
            )  # The status may be written while the attempt ends.

        status = await eventually(counted)
        assert 0.3 <= float(status["observedHours"]) < 0.4
        assert 5 < float(status["evictionsPerNodeHour"]) < 7
        await here.waiting(2)
        await here.pass_time(605)
        await tier_condition(here, "on-demand", "Available", "False", "InsufficientCapacity")
        status = await tier_status(here, "on-demand")
        assert (status["refusals"], status["availability"]) == (1, "0.000")
        assert status["lastUnavailableAt"]


async def test_conditions_of_an_invalid_tier_and_of_one_without_a_price(api_server: ApiServer) -> None:
    async with world(api_server, tiers=()) as here, here.operator():
        await here.capacity("free", price=None)
        await here.capacity("far", cluster="east")
        await tier_condition(here, "free", "Priced", "False", "PriceUnknown")
        await tier_condition(here, "far", "Available", "False", "UnknownCluster")
        await here.submit(tiers=[{"name": "free", "capacityTier": f"{here.namespace}-free"}], budget="5")
        await here.run(1)
        await eventually(lambda: here.has_phase("Running"))
        await here.pass_time(301)

        async def unknown() -> bool:
            return bool((await here.status())["cost"]["spent"] == "unknown")

        await eventually(unknown)
        assert (await here.status())["cost"]["unpriced"] == ["free"]
        degraded = await here.condition("Degraded")
        assert (degraded["status"], degraded["reason"]) == ("True", "PriceUnknown")
        assert "spec.budget" in degraded["message"]


async def test_a_price_is_looked_up_while_the_job_starts(api_server: ApiServer) -> None:
    async with world(api_server, tiers=()) as here:
        found = {PriceSource.AWS: lambda _spec: Price(0.5, 2.0)}
        async with here.operator(price_sources=found):
            await here.capacity("spot", price={"source": "aws"}, region="r", instanceTypes=["t"])
            await here.submit(tiers=[{"name": "spot", "capacityTier": f"{here.namespace}-spot"}])
            await here.run(1)
            await eventually(lambda: here.has_phase("Running"))
            await tier_condition(here, "spot", "Priced", "True", "Known")
            await here.pass_time(540)  # for two nodes

            async def costs() -> bool:
                cost = (await here.status())["cost"]
                on_demand = float(cost["onDemandEquivalent"])
                return 0.08 <= float(cost["spent"]) < 0.3 and on_demand == pytest.approx(
                    4 * float(cost["spent"]), abs=0.03
                )

            await eventually(costs)


async def test_a_tier_at_its_node_limit_is_skipped(api_server: ApiServer) -> None:
    async with world(api_server, tiers=()) as here, here.operator():
        await here.capacity("spot-a", limits={"nodes": 2})
        await here.capacity("on-demand", capacityType="on-demand")
        await here.submit("first", tiers=tiers(here))
        await here.run(1, "first")
        await eventually(lambda: here.has_phase("Running", "first"))
        await here.submit("second", tiers=tiers(here))
        await eventually(lambda: here.is_on("on-demand", 1, "second"))  # skipped, not exhausted

        async def reported() -> bool:
            return "LimitReached" in await here.events("second")

        await eventually(reported)
        await here.submit("third", tiers=tiers(here)[:1])
        await eventually(lambda: here.is_on("spot-a", 1, "third"))
        await here.pass_time(30)
        condition = await here.condition("Degraded", "third")
        assert (condition["status"], condition["reason"]) == ("True", "LimitReached")
        assert condition["message"].count("limits.nodes 2: 2 are in use, 2 are needed") == 1
        assert [name for name in await here.rayjobs() if name.startswith("third")] == []
        await tier_condition(here, "spot-a", "Available", "False", "LimitReached")
        await here.report(1, "first", jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")
        await eventually(lambda: here.has_phase("Succeeded", "first"))
        await here.clock.advance(15)
        await eventually(lambda: here.rayjob(1, "third"))


@pytest.mark.parametrize(("change", "room"), [(4, True), (1, False)])
async def test_a_job_uses_the_nodes_of_its_running_attempt(api_server: ApiServer, change: int, room: bool) -> None:
    """The number of nodes in the changed spec applies to the next attempt."""
    async with world(api_server, tiers=()) as here:
        await here.capacity("spot-a", limits={"nodes": 4 if room else 3})
        await here.capacity("on-demand", capacityType="on-demand")
        async with here.operator():
            await here.submit("first", tiers=tiers(here), updateStrategy="AtNextAttempt")
            await here.run(1, "first")
            await eventually(lambda: here.has_phase("Running", "first"))
            spec = ray_spec()
            spec["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"] = change
            await here.patch("first", workload={"ray": {"template": {"spec": spec}}})
            await here.idle()
        async with here.operator():  # A new controller knows it only from the status.
            await here.submit("second", tiers=tiers(here))
            await eventually(lambda: here.is_on("spot-a" if room else "on-demand", 1, "second"))
