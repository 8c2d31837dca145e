"""Runs a tick job on one spot tier and on-demand whose policy compares the slack with a limit in each tick.

`uniform-progress` and `adaptive` are such policies: without capacity they wait while the slack is at least one limit,
and they leave on-demand for spot capacity while it is at least another one. `slack_rules` has these limits for each
tick. `run` follows the spells of the trace with whole numbers, and builds no view and no choice. Property tests show
that its result is that of `drive.run`.

Rules, with the overhead O of a start and the duration T of a tick
 1. On spot capacity: stay until it is lost; but use on-demand if the slack covers neither 2·O, nor O and the rest of
    the start or a tick, whichever is shorter.
 2. Without capacity: wait while the slack is at least O + T and the limit to wait; else on-demand.
 3. On on-demand: use spot capacity in the first tick in which the slack is at least 2·O and the limit to leave.
"""

from __future__ import annotations

from enum import Enum, auto

from spotladder.core.model import NO_OUTCOMES, CapacityType
from spotladder.core.policies import Policy
from spotladder.core.policies.safety_net import EXACT
from tests.bench.ticks.job import TickJob, TickResult, TickTier, cost_of
from tests.bench.ticks.slack_rules import SlackRule, slack_rule


class _On(Enum):
    """Where the attempt of a job is. `NOTHING`: the job has had none yet."""

    NOTHING = auto()
    SPOT = auto()
    ON_DEMAND = auto()


def run(job: TickJob, policy: Policy) -> TickResult | None:
    """The result of the job; None if the job, or the policy on its trace, does not follow the rules of this module."""
    pair = _pair(job)
    rule = None if pair is None else slack_rule(policy, job, *pair)
    return None if pair is None or rule is None else _Run(job, *pair, rule).result()


def _pair(job: TickJob) -> tuple[TickTier, TickTier] | None:
    """The spot tier with a trace and the on-demand tier without one, if these are the only tiers and prices are fixed
    and known."""
    kinds = {entry.tier.capacity_type: entry for entry in job.tiers}
    spot, on_demand = kinds.get(CapacityType.SPOT), kinds.get(CapacityType.ON_DEMAND)
    if len(job.tiers) != 2 or spot is None or on_demand is None or job.varying:
        return None
    plain = spot.available is not None and on_demand.available is None and spot.tier.fleet == NO_OUTCOMES
    return (spot, on_demand) if plain and all(entry.tier.price.known for entry in job.tiers) else None


class _Run:
    """One run. `left` is the rest of the overhead of the running attempt. Times are in seconds."""

    def __init__(self, job: TickJob, spot: TickTier, on_demand: TickTier, rule: SlackRule) -> None:
        self.job, self.spot, self.on_demand, self.rule = job, spot, on_demand, rule
        self.ticks = -(-job.deadline // job.tick)
        self.tick = self.seen = self.done = self.left = self.attempts = self.evictions = self.overhead = 0
        self.on, self.ended_at = _On.NOTHING, 0
        self.seconds = {_On.SPOT: 0, _On.ON_DEMAND: 0}

    def result(self) -> TickResult | None:
        """The result; None if the run comes to a tick to which the rules do not apply."""
        job, changes, first = self.job, self.rule.capacity.changes, self.rule.capacity.first
        while self.tick < self.ticks and not self.ended_at:
            while changes[self.seen] <= self.tick:
                self.seen += 1
            has, until = first is (self.seen % 2 == 0), min(changes[self.seen], self.ticks)
            if self.on is _On.ON_DEMAND:
                self._use_on_demand()
            elif not has:
                self._wait(until)
            elif self.on is _On.SPOT:
                self._use_spot(until)
            elif self._slack() >= 2 * job.overhead:
                self._start(_On.SPOT)
            elif self._slack() < job.overhead + job.tick:
                self._start(_On.ON_DEMAND)
            else:
                return None
        met = 0 < self.ended_at <= job.deadline
        billed: dict[float, int] = {}
        for kind, entry in ((_On.SPOT, self.spot), (_On.ON_DEMAND, self.on_demand)):
            price = entry.tier.price.per_node_hour
            billed[price] = billed.get(price, 0) + job.workers * self.seconds[kind]
        return TickResult(
            cost=cost_of(billed),
            finished=float(self.ended_at if met else job.deadline),
            met=met,
            evictions=self.evictions,
            attempts=self.attempts,
            recomputed=float(self.overhead),
            ticks=self.tick,
        )

    def _slack(self) -> int:
        job = self.job
        return job.deadline - self.tick * job.tick - (job.work - self.done)

    def _start(self, on: _On) -> None:
        self.on, self.left = on, self.job.overhead
        self.attempts += 1

    def _use_spot(self, until: int) -> None:
        """Use the capacity, which is lost in tick `until`."""
        job = self.job
        spare = self._slack() - job.overhead
        if spare < self.left:
            if spare < min(job.tick, self.left):
                self._start(_On.ON_DEMAND)
                return
            self._run_until(self.tick + 1)
        else:
            self._run_until(until)
        if not self.ended_at and self.tick == until < self.ticks:
            self.evictions += 1
            self.left = job.overhead

    def _wait(self, until: int) -> None:
        """Wait for capacity, which comes in tick `until`."""
        job, waits, tick, slack = self.job, self.rule.waits, self.tick, self._slack()
        remaining, least = job.work - self.done, job.overhead + job.tick
        while tick < until:
            if slack < least or slack < waits(tick, remaining) - EXACT:
                self.tick = tick
                self._start(_On.ON_DEMAND)
                return
            tick += 1
            slack -= job.tick
        self.tick = tick

    def _use_on_demand(self) -> None:
        """Use on-demand until the tick in which the job leaves it, or until the job ends."""
        job, changes, leaves, seen = self.job, self.rule.capacity.changes, self.rule.leaves, self.seen
        tick, length, left = self.tick, job.tick, self.left
        remaining, slack, least = job.work - self.done, self._slack(), 2 * job.overhead
        has = self.rule.capacity.first is (seen % 2 == 0)
        while slack >= least and remaining > 0 and tick < self.ticks:
            until = min(changes[seen], self.ticks)
            if has:
                while tick < until and remaining > 0 and slack >= least:
                    if slack >= leaves(tick, remaining) - EXACT:
                        self._run_until(tick)
                        self._start(_On.SPOT)
                        return
                    tick += 1
                    starting = min(left, length)
                    left -= starting
                    slack -= starting
                    remaining -= length - starting
            else:
                room = (until - tick) * length
                starting = min(left, room)
                left -= starting
                slack -= starting
                remaining -= room - starting
                tick = until
            if tick == until:
                has, seen = not has, seen + 1
        self._run_until(self.ticks)

    def _run_until(self, tick: int) -> None:
        """Train and pay until this tick, or until the job ends."""
        job = self.job
        room = (tick - self.tick) * job.tick
        starting = min(self.left, room)
        progress = min(room - starting, job.work - self.done)
        self.done += progress
        if self.done == job.work:
            room = starting + progress
            self.ended_at = self.tick * job.tick + room
        self.left -= starting
        self.overhead += starting
        self.seconds[self.on] += room
        self.tick += -(-room // job.tick)
