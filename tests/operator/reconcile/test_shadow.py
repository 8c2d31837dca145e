"""The shadow policy: its choice is a condition, and it changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.core.model import TierChoice, TierView
from spotladder.operator.reconcile import reconciler
from spotladder.operator.reconcile.status import COST_WRITE_INTERVAL
from spotladder.policies import registry
from spotladder.resources import TIEREDJOBS
from tests.kube.world import KubeWorld, eventually
from tests.operator.memory_world import world_in_memory
from tests.operator.reconcile.test_reconciler import memory, reason_is, server_of


class Broken:
    def choose(self, view: TierView) -> TierChoice:
        raise KeyError(view.current)


async def running(kube: KubeWorld, shadow: str, **spec: Any) -> None:
    """A job with this shadow policy whose first attempt is ready."""
    await kube.submit(policy={"name": "ordered", "shadow": shadow}, **spec)
    await eventually(lambda: kube.is_on("spot-a", 1))
    await kube.run(1)
    await eventually(lambda: kube.has_phase("Running"))


async def test_the_condition_has_the_tier_of_the_shadow_policy() -> None:
    async with memory() as kube:
        await running(kube, "on-demand")
        await eventually(lambda: reason_is(kube, "Shadow", "OtherTier"))
        found = await kube.condition("Shadow")
        assert (found["status"], found["message"].partition(":")[0]) == ("False", "on-demand would use on-demand")
        assert await kube.is_on("spot-a", 1), "it is never followed"
        await kube.patch(policy={"name": "ordered", "shadow": "ordered"})
        await eventually(lambda: reason_is(kube, "Shadow", "SameTier"))
        assert (await kube.condition("Shadow"))["message"] == "ordered would use spot-a"
        await kube.patch(policy={"name": "ordered", "shadow": None})
        await eventually(lambda: reason_is(kube, "Shadow", "NotSet"))
        assert await kube.rayjobs() == ["digits-a001"]


async def saved(kube: KubeWorld) -> tuple[float, float]:
    """The time on on-demand and the estimated savings in the status."""
    shadow = (await kube.status())["shadow"]
    assert shadow["agreedSeconds"] == 0
    assert shadow["summary"].startswith("on-demand agreed 0 % of the time, and would have used on-demand for ")
    (tier,) = shadow["tiers"]
    assert float(shadow["saved"]) == pytest.approx(float(tier["actual"]) - float(tier["estimated"]), abs=2e-4)
    return tier["seconds"], float(shadow["saved"])


async def test_the_status_has_what_the_policy_would_have_saved_and_a_new_controller_continues_it() -> None:
    kube = world_in_memory()
    await kube.make_namespace()
    for name in ("spot-a", "spot-b"):
        await kube.capacity(name)
    await kube.capacity("on-demand", capacityType="on-demand", price={"perNodeHour": "4"})
    async with kube.operator():
        await running(kube, "on-demand", stallTimeout="1h")
        await kube.pass_time(COST_WRITE_INTERVAL + 5)
        seconds, usd = await saved(kube)
        assert seconds >= COST_WRITE_INTERVAL
        assert usd == pytest.approx(2 * (1 - 4) * seconds / 3600, abs=0.02)
    async with kube.operator():
        await kube.pass_time(COST_WRITE_INTERVAL + 5)
        later, more = await saved(kube)
        assert later >= seconds + COST_WRITE_INTERVAL
        assert more < usd


async def test_a_choice_that_stays_is_written_once() -> None:
    async with memory() as kube:
        await running(kube, "adaptive")
        await kube.pass_time(15)
        before = len(server_of(kube).writes)
        await kube.pass_time(20)
        assert [write for write in server_of(kube).writes[before:] if write[1] == TIEREDJOBS.plural] == []


async def test_a_shadow_policy_that_fails_does_not_stop_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_name(name: str) -> Any:
        return Broken() if name == "greedy" else registry.by_name(name)

    monkeypatch.setattr(reconciler, "by_name", by_name)
    async with memory() as kube:
        await running(kube, "greedy")
        await eventually(lambda: reason_is(kube, "Shadow", "PolicyFailed"))
        assert (await kube.condition("Shadow"))["message"] == "greedy: KeyError: 'spot-a'"


async def test_a_job_without_a_shadow_policy_has_no_condition() -> None:
    async with memory() as kube:
        await kube.submit()
        await eventually(lambda: kube.is_on("spot-a", 1))
        assert "Shadow" not in {entry["type"] for entry in (await kube.status())["conditions"]}
