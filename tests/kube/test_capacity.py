"""What a provisioner says: that there is no machine, and what a tier makes of it."""

from __future__ import annotations

import pytest

from spotladder.clusters.client import Object
from tests.kube.apiserver import ApiServer
from tests.kube.world import World, eventually, world

NONE = "Failed to schedule pod, no instance type had enough resources or had a required offering, requirements=…"
ICE = "NodeClaim spot-x event: creating instance, insufficient capacity, with fleet error(s), …"


def tiers(here: World, *, asks: str = "fallback") -> list[Object]:
    limits = {"maxFailures": 1, "provisionTimeout": "10m", "onInsufficientCapacity": asks}
    return [{"name": name, "capacityTier": f"{here.namespace}-{name}", **limits} for name in ("spot-a", "on-demand")]


def claim(name: str) -> Object:
    """Karpenter deletes it within a second: its Event is all there is."""
    return {"kind": "NodeClaim", "metadata": {"name": name, "uid": f"uid-{name}"}}


@pytest.mark.parametrize("source", ["karpenter", "eks-auto-mode/compute"])
async def test_a_refusal_of_the_scheduler_in_karpenter_falls_back_at_once(api_server: ApiServer, source: str) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here))
        (pod, *_) = await here.waiting(1)
        await here.say("FailedScheduling", NONE, about={"kind": "Pod", **pod}, source=source)
        await eventually(lambda: here.is_on("on-demand", 2))
        assert (await here.status())["attempts"][0]["reason"] == "InsufficientCapacity"


@pytest.mark.parametrize("refused_first", [True, False])
async def test_a_refused_claim_falls_back_at_once(api_server: ApiServer, refused_first: bool) -> None:
    """Its Event is about an object without namespace that is gone, and may come before the pod's nomination."""
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here))
        (pod, *_) = await here.waiting(1)
        name = f"{here.namespace}-spot-nnjb2"
        nominated = ("Nominated", f"Pod should schedule on: nodeclaim/{name}")
        if refused_first:
            await here.say("InsufficientCapacityError", ICE, about=claim(name))
            await here.quiet()
            await here.say(*nominated, about={"kind": "Pod", **pod})
        else:
            await here.say(*nominated, about={"kind": "Pod", **pod})
            await here.quiet()
            assert await here.is_on("spot-a", 1)
            await here.say("InsufficientCapacityError", ICE, about=claim(name))
        await eventually(lambda: here.is_on("on-demand", 2))


async def test_a_tier_that_waits_waits_for_its_timeout(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here, asks="wait"))
        (pod, *_) = await here.waiting(1)
        await here.say("FailedScheduling", NONE, about={"kind": "Pod", **pod})
        await here.pass_time(590)
        assert await here.is_on("spot-a", 1)
        await here.pass_time(15)
        await eventually(lambda: here.is_on("on-demand", 2))


async def test_what_is_said_of_others_does_not_count(api_server: ApiServer) -> None:
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here))
        (pod, *_) = await here.waiting(1)
        mine: Object = {"kind": "Pod", **pod}
        stranger: Object = {"kind": "Pod", "metadata": {"name": "x", "namespace": here.namespace, "uid": "uid-x"}}
        earlier: Object = {"kind": "Pod", "metadata": {**pod["metadata"], "uid": "of-an-earlier-pod-of-this-name"}}
        await here.say("FailedScheduling", NONE, about=stranger)
        await here.say("FailedScheduling", NONE, about=earlier)
        await here.say("FailedScheduling", NONE, about=mine, source="default-scheduler")
        await here.say("FailedScheduling", "Failed to schedule pod, no instance type has enough resources", about=mine)
        await here.say("InsufficientCapacityError", ICE, about=claim(f"{here.namespace}-of-another-tier"))
        await here.pass_time(60)
        assert await here.is_on("spot-a", 1)


async def test_a_refusal_does_not_outlive_its_attempt(api_server: ApiServer) -> None:
    """The pods of the next attempt are new, and nobody has refused them."""
    async with world(api_server) as here, here.operator():
        await here.submit(tiers=tiers(here), exhausted="Restart")
        (pod, *_) = await here.waiting(1)
        await here.say("FailedScheduling", NONE, about={"kind": "Pod", **pod})
        await eventually(lambda: here.is_on("on-demand", 2))
        await here.collect(1)
        await here.waiting(2)
        await here.pass_time(60)
        assert await here.is_on("on-demand", 2)
