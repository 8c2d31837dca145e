"""The policy `adaptive` on a real API server: what one job observes on a tier moves another one, also after a restart
of the controller."""

from __future__ import annotations

from typing import Any

from spotladder.checkpoints.log import CommitLog
from spotladder.clusters.transport import Object
from spotladder.core.codec import load_state
from spotladder.operator.reporting.tier_status import WRITE_INTERVAL
from spotladder.resources import CAPACITYTIERS
from tests.kube.apiserver import ApiServer
from tests.kube.world import KubeWorld, eventually, world

PRICES = {"cheap": "1", "dear": "2", "on-demand": "4"}


async def tiers_of(kube: KubeWorld) -> list[dict[str, Any]]:
    """Two spot tiers and on-demand, each with its own price."""
    entries = []
    for name, usd in PRICES.items():
        kind = "on-demand" if name == "on-demand" else "spot"
        full = await kube.capacity(name, capacityType=kind, price={"perNodeHour": usd, "onDemandPerNodeHour": "4"})
        entries.append({"name": name, "capacityTier": full, "maxFailures": -1, "provisionTimeout": "10m"})
    return entries


async def moves_to_the_dear_tier(kube: KubeWorld, tiers: list[dict[str, Any]]) -> None:
    """A job that makes 20 steps an hour loses the capacity of the cheap tier, and trains on the other one."""
    policy, limits = {"name": "adaptive"}, {"maxDuration": "24h", "stallTimeout": "20h"}
    await kube.submit(tiers=tiers, policy=policy, **limits)
    await kube.begin(1, "cheap")
    program = CommitLog(kube.bucket.store, "digits", namespace=kube.namespace).start(1, "")
    for step in (20, 40):
        await kube.pass_time(3600)
        program.commit(step, [], total=100)
        await eventually(lambda step=step: has_step(kube, step))  # type: ignore[misc]
    await kube.kill_worker(1)
    await kube.idle()
    waits = await kube.pod(1, "worker", 9, run=False)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    await kube.set_pod(waits, conditions=[condition])
    await kube.pass_time(605)
    await kube.collect(1)
    await kube.begin(2, "dear")


async def has_step(kube: KubeWorld, step: int) -> bool:
    await kube.pass_time(10)
    return load_state((await kube.status())["state"]).progress.step == step


async def status_of(kube: KubeWorld, tier: str) -> Object:
    found: Object = (await kube.client.get(CAPACITYTIERS, f"{kube.namespace}-{tier}")).get("status") or {}
    return found


async def is_granted(kube: KubeWorld, tier: str) -> bool:
    await kube.pass_time(WRITE_INTERVAL)
    status = await status_of(kube, tier)
    return bool(status.get("lastAvailableAt", "") > status.get("lastUnavailableAt", ""))


async def is_refused(kube: KubeWorld, tier: str) -> bool:
    await kube.pass_time(WRITE_INTERVAL)
    return (await status_of(kube, tier)).get("refusals") == 1


async def leaves_the_dear_tier(kube: KubeWorld) -> bool:
    await kube.pass_time(60)
    return await kube.has_phase("Draining")


async def test_a_job_tries_a_cheaper_tier_after_another_job_got_capacity_there(api_server: ApiServer) -> None:
    async with world(api_server, tiers=()) as kube:
        async with kube.operator():
            tiers = await tiers_of(kube)
            await moves_to_the_dear_tier(kube, tiers)
            await eventually(lambda: is_refused(kube, "cheap"))
            refused = await status_of(kube, "cheap")
            assert [entry["count"] for entry in refused["waits"]] == [1]
            assert [entry["price"] for entry in refused["prices"]] == ["1.0000"]
            assert load_state((await kube.status())["state"]).tier == "dear"
            await kube.submit("other", tiers=tiers[:1])
            await eventually(lambda: kube.is_on("cheap", 1, "other"))
            await kube.run(1, "other")
            await eventually(lambda: is_granted(kube, "cheap"))
        before = load_state((await kube.status())["state"])
        async with kube.operator():
            await eventually(lambda: leaves_the_dear_tier(kube))
            state = load_state((await kube.status())["state"])
            assert state.tier == before.tier == "dear"
            assert "cheap is preferred (another job got capacity on cheap" in state.message
