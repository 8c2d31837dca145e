"""Plans of jobs on tiers with recorded prices, which have the dates of the cluster."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.accounting.price_history import mean_price
from spotladder.core.model import KnownCapacity, PricePoint, TierChoice, TierView
from spotladder.planner.assumptions import assumed
from spotladder.planner.plan import TierFacts
from spotladder.planner.simulated import Assumptions, simulator
from spotladder.planner.tier_capacity import with_traces
from spotladder.sim.trace import Trace
from spotladder.sim.world.market import START
from tests.planner.test_plan import ON_DEMAND, SPOT, given

NOW = 1_795_000_000.0
RECORDED = (PricePoint(NOW - 9 * HOUR, 0.8), PricePoint(NOW - 8 * HOUR, 0.1), PricePoint(NOW + HOUR, 7.0))
"""An hour at a high price, then the price of now; a clock that is ahead recorded the last one."""

FACTS = TierFacts(replace(SPOT, prices=RECORDED), "a", KnownCapacity(evictions=0.0))
BACKUP = TierFacts(ON_DEMAND, "b", KnownCapacity(evictions=0.0))


class Watching:
    """Uses spot capacity, and notes the prices that it knows."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, tuple[PricePoint, ...]]] = []

    def choose(self, view: TierView) -> TierChoice:
        (spot, *_) = view.tiers
        self.seen.append((view.now, spot.price.per_node_hour, spot.prices))
        return TierChoice("spot")


def test_a_simulation_begins_now_with_the_prices_that_are_recorded_until_now(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Watching()
    monkeypatch.setattr("spotladder.sim.scenario.installed", lambda _name: policy)
    simulator(given(FACTS, BACKUP, submitted_at=NOW), Assumptions())(1)
    before = PricePoint(START - 9 * HOUR, 0.8), PricePoint(START - 8 * HOUR, 0.1)
    assert {(price, prices) for _now, price, prices in policy.seen} == {(0.1, before)}
    means = [mean_price(prices, now) for now, _price, prices in policy.seen]
    assert means[0] == pytest.approx((0.8 + 8 * 0.1) / 9)
    assert means[-1] < means[0], "the price of now counts for longer and longer"


def test_a_plan_says_that_the_price_stays() -> None:
    said = "the price of spot stays at $0.1 per node-hour, as now; it was $0.1 to $0.8"
    changed, steady = (replace(FACTS, tier=replace(SPOT, prices=RECORDED[first:2])) for first in (0, 1))
    assert said in assumed(Assumptions(), given(changed, BACKUP, submitted_at=NOW))
    assert said not in assumed(Assumptions(), given(steady, BACKUP, submitted_at=NOW))


def test_the_prices_of_a_trace_replace_those_of_the_cluster() -> None:
    trace = Trace("zone", np.zeros(1), np.array([2], dtype=np.int64), 10 * HOUR, prices=np.array([0.3]))
    assert with_traces(FACTS, (trace,), 2).tier.prices == ()
    assert with_traces(FACTS, (replace(trace, prices=None),), 2).tier.prices == RECORDED
