"""Builders for the simulator's tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from spotladder.core.model import CapacityType, JobSpec, Price, Tier
from spotladder.core.policies.ordered import Ordered
from spotladder.sim.readers.any_format import read_zones
from spotladder.sim.trace import Trace
from spotladder.sim.world.backend import SimBackend
from spotladder.sim.world.market import START, Market
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationRun
from spotladder.sim.world.zone import ZonePlan
from tests.bench.ticks.job import NEVER, TickJob, TickTier

HOUR = 3600
SPOT, ON_DEMAND = 0.9731, 3.06


def tick_job(
    available: Sequence[bool], *, work: int = 2 * HOUR, overhead: int = 180, deadline: int = 4 * HOUR
) -> TickJob:
    """A job with on-demand and one spot tier; `available` has the spot availability of each tick."""
    spot = Tier("spot", -1, NEVER, CapacityType.SPOT, Price(SPOT, ON_DEMAND))
    on_demand = Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(ON_DEMAND, ON_DEMAND))
    return TickJob((TickTier(spot, tuple(available)), TickTier(on_demand)), work, overhead, deadline)


def trace(*steps: tuple[float, int], end: float = 100 * HOUR, prices: Sequence[float] | None = None) -> Trace:
    """A trace of steps (second, number of nodes from then on)."""
    times, nodes = zip(*steps, strict=True)
    found = None if prices is None else np.array(prices, dtype=np.float64)
    return Trace("spot", np.array(times, dtype=np.float64), np.array(nodes, dtype=np.int64), end, prices=found)


def read_trace(path: Path) -> Trace:
    """The trace of a file with one zone."""
    ((reading,),) = read_zones(path)
    return reading.trace


def zone(name: str, *steps: tuple[float, int], price: float = 1.0, **more: Any) -> ZonePlan:
    """A zone with this trace; without steps, capacity is unlimited."""
    return ZonePlan(name, trace(*steps) if steps else None, Price(price, 3.0), **more)


def market(*plans: ZonePlan, seed: int = 0) -> Market:
    """A market of these zones; by default `spot` and `on-demand`."""
    return Market.of(plans or (zone("spot"), zone("on-demand", price=3.0)), seed=seed)


def runner(
    here: Market, *, workers: int = 1, max_failures: int = -1, policy: Any = None, spec: Any = None, **program: Any
) -> SimulationRun:
    """A job of one hour whose tiers are the zones of the market, in this order."""
    plan = ProgramPlan(**{"work": HOUR, "restart": 60.0, "commit_interval": 600.0, "commit_time": 10.0, **program})
    tiers = tuple(
        Tier(
            name,
            max_failures,
            900.0,
            CapacityType.ON_DEMAND if name.startswith("on-demand") else CapacityType.SPOT,
            found.plan.price,
            notice=found.plan.notice,
        )
        for name, found in here.zones.items()
    )
    limits = {"stall_timeout": 5 * plan.commit_interval, **(spec or {})}
    job = JobSpec(tiers, workers=workers, submitted_at=START, **limits)
    backend = SimBackend(here, workers, plan, {name: name for name in here.zones})
    return SimulationRun(job, policy or Ordered(), backend)
