"""The cheapest run of a tick job with knowledge of the whole trace: the lower bound for the cost of policies.

`run` solves the job exactly by dynamic programming, backward over the ticks. The state is the remaining work and the
running tier, or idle. Only complete starts are considered: an attempt that ends before its overhead is over costs
money and makes no progress, so it is never part of the cheapest run. Among equal runs, the earlier start is chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.sim.trace import Floats
from tests.bench.ticks.job import TickJob, TickResult

TIE = 1e-9
"""USD. Costs that differ by less count as equal."""

STOP, KEEP = -2, -1
"""The action of the cheapest run in a tick: stay idle, or continue the running tier. Other values start that tier."""


def run(job: TickJob) -> TickResult:
    """The cheapest run that meets the deadline; if none does, a run that misses it and costs nothing."""
    solution = _solve(job)
    if math.isinf(solution.cost):
        return TickResult(0.0, float(job.deadline), met=False, evictions=0, attempts=0)
    return solution.replay()


@dataclass(frozen=True)
class _Solution:
    """`does[tick, state, units]`: the action, where state 0 is idle and state 1 + n is tier n, and units are the
    remaining work. `cost` is in USD."""

    job: TickJob
    unit: int
    does: NDArray[np.int8]
    cost: float

    def replay(self) -> TickResult:
        """Follow the decisions from the first tick."""
        job, tick, left, tier, starts, evictions = self.job, 0, self.job.work, -1, 0, 0
        while True:
            if tier >= 0 and not job.tiers[tier].has(tick):
                tier, evictions = -1, evictions + 1
            chosen = int(self.does[tick, tier + 1, left // self.unit])
            if chosen == STOP:
                tier, tick = -1, tick + 1
                continue
            overhead = 0
            if chosen != KEEP:
                tier, starts, overhead = chosen, starts + 1, job.overhead
            last = tick + overhead // job.tick
            room = job.tick - overhead % job.tick
            if left <= room:
                finished = last * job.tick + overhead % job.tick + left
                return TickResult(self.cost, float(finished), True, evictions, starts)
            left, tick = left - room, last + 1


def _solve(job: TickJob) -> _Solution:
    ticks, tiers = -(-job.deadline // job.tick), len(job.tiers)
    unit = gcd(job.tick, job.overhead, job.work)
    size = job.work // unit + 1
    units = np.arange(size)
    full, part = divmod(job.overhead, job.tick)
    room = np.array([(job.tick - part) // unit, job.tick // unit])
    after_start, after_tick = (np.maximum(units - step, 0) for step in room)
    does = np.full((ticks, tiers + 1, size), STOP, dtype=np.int8)
    done = np.where(units == 0, 0.0, np.inf)
    # values[n] is for the tick after the n-th next one; a start needs the value after its overhead.
    values: list[Floats] = [np.tile(done, (tiers + 1, 1)) for _ in range(full + 1)]
    for tick in range(ticks - 1, -1, -1):
        here = np.empty((tiers + 1, size))
        idle, chosen = values[0][0].copy(), np.full(size, STOP, dtype=np.int8)
        for index, entry in enumerate(job.tiers):
            last = tick + full
            if last >= ticks or not all(entry.has(one) for one in range(tick, last + 1)):
                continue
            before = sum(entry.price(one) for one in range(tick, last)) * job.tick / HOUR
            after = values[full][index + 1][after_start]
            cost = before + _tick_cost(job, index, last, units * unit, after, starting=part)
            better = cost <= idle + TIE
            idle, chosen = np.where(better, cost, idle), np.where(better, index, chosen).astype(np.int8)
        here[0], does[tick, 0] = idle, chosen
        for index, entry in enumerate(job.tiers):
            here[index + 1], does[tick, index + 1] = idle, chosen
            if entry.has(tick):
                cost = _tick_cost(job, index, tick, units * unit, values[0][index + 1][after_tick])
                better = cost <= idle + TIE
                here[index + 1] = np.where(better, cost, idle)
                does[tick, index + 1] = np.where(better, KEEP, chosen)
        here[:, 0] = 0.0
        values = [here, *values[:-1]]
    return _Solution(job, unit, does, float(values[0][0][-1]))


def _tick_cost(
    job: TickJob, index: int, tick: int, left: NDArray[np.int64], after: Floats, *, starting: int = 0
) -> Floats:
    """USD from this tick on for a running tier, whose first `starting` seconds make no progress, by the remaining
    seconds of work. `after` is the cost after this tick. The last tick is billed pro rata."""
    per_second = job.tiers[index].price(tick) / HOUR
    allowed = min(job.tick, job.deadline - tick * job.tick)
    finishes = starting + left <= job.tick
    last = np.where(starting + left <= allowed, (starting + left) * per_second, np.inf)
    found: Floats = np.where(finishes, last, job.tick * per_second + after)
    return found
