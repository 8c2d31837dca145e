"""Jobs with deadlines in production, where neither the work nor the duration of a start is given."""

from __future__ import annotations

from random import Random

import pytest

from spotladder.core.model import Stage
from spotladder.policies import registry
from tests.core.policies.deadline_world import Plan, run_of
from tests.kube.world import KubeWorld
from tests.operator.memory_world import filled_world

HOUR = 3600.0
SEEDS = 25


def random_plan(dice: Random) -> Plan:
    """A job whose deadline could be kept. The spot capacity is never there in a quarter of the plans."""
    spells = dice.choice([(1800.0, 1800.0), (600.0, 3000.0), (7200.0, 1800.0), (0.0, 0.0)])
    return Plan(
        work=dice.uniform(1.4, 5.0) * HOUR,
        spare=dice.choice([0.0, 600.0, HOUR, 4 * HOUR, 12 * HOUR]),
        boot=dice.choice([10.0, 40.0, 120.0]),
        longest=dice.choice([20.0, 60.0, 240.0, 480.0]),
        spells=spells,
        commit_every=dice.choice([5, 20, 60]),
    )


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "adaptive"])
def test_no_deadline_that_could_be_kept_is_missed(name: str) -> None:
    missed = []
    for seed in range(SEEDS):
        dice = Random(seed)
        ended = run_of(random_plan(dice), registry.by_name(name), dice).state
        if ended.stage is not Stage.SUCCEEDED:
            missed.append((seed, ended.message))
    assert missed == []


async def test_a_job_that_never_gets_spot_capacity_moves_before_its_work_is_known() -> None:
    async with filled_world() as kube, kube.operator():
        tiers = [
            {"name": name, "capacityTier": f"{kube.namespace}-{name}", "maxFailures": -1, "provisionTimeout": "1h"}
            for name in ("spot-a", "on-demand")
        ]
        await kube.submit(tiers=tiers, policy={"name": "greedy"}, maxDuration="2h")
        await kube.waiting(1)
        await _pass(kube, minutes=14)
        assert await kube.is_on("spot-a", 1)
        await _pass(kube, minutes=2)
        await kube.collect(1)
        await kube.begin(2, "on-demand")
        await kube.succeed(2)


async def _pass(kube: KubeWorld, minutes: int) -> None:
    for _ in range(minutes):
        await kube.pass_time(60)
