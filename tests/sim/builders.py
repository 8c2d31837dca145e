"""Builders for the simulator's tests."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.core.model import CapacityType, Price, Tier
from spotladder.sim.ticks.job import NEVER, TickJob, TickTier

HOUR = 3600
SPOT, ON_DEMAND = 0.9731, 3.06


def tick_job(
    available: Sequence[bool], *, work: int = 2 * HOUR, overhead: int = 180, deadline: int = 4 * HOUR
) -> TickJob:
    """A job with one spot tier, whose availability is given tick by tick, and on-demand."""
    spot = Tier("spot", -1, NEVER, CapacityType.SPOT, Price(SPOT, ON_DEMAND))
    on_demand = Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(ON_DEMAND, ON_DEMAND))
    return TickJob((TickTier(spot, tuple(available)), TickTier(on_demand)), work, overhead, deadline)
