"""The memory of a run does not grow with the length of its traces."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from spotladder.core.model import CapacityType, JobSpec, Price, Tier
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import UNLIMITED, Trace, of_ticks
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.zone import Zone, ZonePlan
from tests.sim.builders import HOUR

TICK = 600.0
WEEK = 1008
"""Ticks of a week."""


def changing(ticks: int, *, priced: bool = False) -> Trace:
    """Availability, and a price, that change about every half hour."""
    dice = np.random.default_rng(1)
    made = of_ticks("spot", np.repeat(dice.random(-(-ticks // 3)) < 0.6, 3)[:ticks], TICK)
    prices = np.repeat(dice.random(-(-ticks // 3)), 3)[:ticks]
    return Trace("spot", made.times, made.nodes, made.end, prices) if priced else made


def peak(trace: Trace, hours: int = 12) -> int:
    """Maximum number of bytes that one run with this many hours of work allocates in addition to the trace."""
    spot, on_demand = Price(1.0, 3.0), Price(3.0, 3.0)
    tiers = (
        Tier("spot", -1, 600.0, CapacityType.SPOT, spot),
        Tier("on-demand", -1, 600.0, CapacityType.ON_DEMAND, on_demand),
    )
    scenario = Scenario(
        JobSpec(tiers, max_duration=2 * hours * HOUR),
        ProgramPlan(hours * HOUR, restart=180.0),
        (ZonePlan("spot", trace, spot), ZonePlan("on-demand", price=on_demand)),
        {"spot": "spot", "on-demand": "on-demand"},
    )
    simulate(scenario, "uniform-progress", 3)  # loads the policy
    tracemalloc.start()
    try:
        simulate(scenario, "uniform-progress", 3)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_run_needs_no_more_memory_with_a_trace_that_is_20_times_as_long() -> None:
    assert peak(changing(20 * WEEK)) < 1.25 * peak(changing(WEEK))


@pytest.mark.parametrize("priced", [False, True])
def test_a_zone_is_the_same_during_a_run_of_limited_duration(priced: bool) -> None:
    plan = ZonePlan("spot", changing(WEEK, priced=priced), Price(1.0, 3.0))
    everything, limited = Zone(plan), Zone(plan, 20 * HOUR)
    moments = np.arange(0.0, 20 * HOUR, 300.0).tolist()
    for now in moments:
        assert (limited.nodes(now), limited.price(now)) == (everything.nodes(now), everything.price(now))
        assert limited.cost(0.0, now) == pytest.approx(everything.cost(0.0, now))
        after = everything.next_change(now)
        assert limited.next_change(now) == (after if after <= 20 * HOUR else np.inf)
    assert {limited.nodes(now) for now in moments} == {0, UNLIMITED}
    assert len(limited.times) < len(everything.times)
