"""The oracle: exact on small jobs (checked by brute force), and never more expensive than a policy."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from spotladder.core.model import CapacityType, Price, Tier
from spotladder.policies import registry
from tests.bench.ticks import drive, oracle
from tests.bench.ticks.job import NEVER, TickJob, TickTier
from tests.searching import examples
from tests.sim.builders import HOUR, tick_job


def small_job(dice: Random) -> TickJob:
    varying = dice.random() < 0.5
    spot = TickTier(
        Tier("spot", -1, NEVER, CapacityType.SPOT, Price(1.0, 3.0)),
        tuple(dice.random() < 0.6 for _ in range(9)),
        tuple(dice.choice([0.5, 1.0, 4.0]) for _ in range(9)) if varying else None,
    )
    steady = TickTier(Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(3.0, 3.0)))
    work = dice.choice([600, 1500, 2400, 3300])
    return TickJob((spot, steady), work, dice.choice([0, 150, 600, 900]), max(work, dice.choice([3900, 5100, 5400])))


def cheapest(job: TickJob) -> float:
    """The lowest cost, found by trying every choice in every tick by the rules of the tick world."""
    ticks = -(-job.deadline // job.tick)

    @cache
    def best(tick: int, tier: int, overhead: int, left: int) -> float:
        if tick == ticks:
            return float("inf")
        costs = [best(tick + 1, -1, 0, left)]
        for index, entry in enumerate(job.tiers):
            if not entry.has(tick):
                continue
            still = overhead if index == tier else job.overhead
            spent = min(still, job.tick)
            price = entry.price(tick) / HOUR
            if left <= job.tick - spent:
                in_time = tick * job.tick + spent + left <= job.deadline
                costs.append((spent + left) * price if in_time else float("inf"))
            else:
                runs = entry.has(tick + 1) if tick + 1 < ticks else False
                on = index if runs else -1
                costs.append(job.tick * price + best(tick + 1, on, still - spent, left - job.tick + spent))
        return min(costs)

    return best(0, -1, 0, job.work)


@settings(max_examples=examples(60), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_the_oracle_is_as_cheap_as_a_search_over_all_choices(seed: int) -> None:
    job = small_job(Random(seed))
    result, least = oracle.run(job), cheapest(job)
    assert result.met == (least < float("inf"))
    if result.met:
        assert result.cost == pytest.approx(least)
        assert result.finished <= job.deadline


@settings(max_examples=examples(15), deadline=None, phases=(Phase.explicit, Phase.generate))
@given(seed=st.integers(0, 2**32))
def test_no_policy_is_cheaper_than_the_oracle(seed: int) -> None:
    dice = Random(seed)
    up, flags = True, list[bool]()
    while len(flags) < 72:
        flags += [up] * dice.choice([1, 2, 5, 12])
        up = not up
    job = tick_job(flags[:72], work=8 * HOUR, deadline=12 * HOUR, overhead=dice.choice([180, 720]))
    least = oracle.run(job).cost
    for name in ("greedy", "uniform-progress", "on-demand"):
        assert drive.run(job, registry.by_name(name)).cost >= least - 1e-9
