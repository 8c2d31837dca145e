"""The fast path of the tick world: the same policies and the same views, without the lifecycle around them.

In the tick world an attempt starts, stops and is lost within a tick, nothing fails to start and no tier is exhausted.
What `decide` does then is little: it asks the policy until the policy is content. `run` does only that. A property test
shows that it gives the same result as `drive.run` for any policy.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.accounting import HOUR, charged
from spotladder.core.availability import with_sightings
from spotladder.core.losses import with_record
from spotladder.core.model import (
    FOR_EVER,
    Attempt,
    JobState,
    Observation,
    Progress,
    Stage,
    TierView,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation
from spotladder.sim.ticks.drive import DECISIONS_PER_TICK, Unsettled
from spotladder.sim.ticks.job import NEVER, START, TickJob, TickResult
from spotladder.sim.ticks.world import NO_CAPACITY


def supports(job: TickJob) -> bool:
    """Whether the fast path holds for this job: no tier can be exhausted."""
    return all(entry.tier.max_failures == FOR_EVER and entry.tier.provision_timeout >= NEVER for entry in job.tiers)


def run(job: TickJob, policy: Policy) -> TickResult:
    """The same as `drive.run` for a job that `supports` accepts."""
    return _Run(job, policy).run()


class _Run:
    """One run. `state` is the part of a job's state that a policy can see."""

    def __init__(self, job: TickJob, policy: Policy) -> None:
        self.job, self.policy, self.spec = job, policy, job.spec()
        self.tiers = {entry.tier.name: entry for entry in job.tiers}
        self.names = frozenset(self.tiers)
        self.state = JobState()
        self.attempt: Attempt | None = None
        self.running = False
        self.held = 0
        self.left = self.done = self.number = self.evictions = 0
        self.cost = self.overhead = 0.0
        self.now = START

    def run(self) -> TickResult:
        job, length = self.job, self.job.tick
        limit = START + job.deadline
        ticks, finished = -(-job.deadline // length), False
        for tick in range(ticks):
            self.now = START + tick * length
            if job.varying:
                self.spec = job.spec(tick)
            self._begin(tick)
            self._settle(tick)
            if not self.running or self.attempt is None:
                continue
            spent = min(self.left, length)
            progress = min(length - spent, job.work - self.done)
            finished = self.done + progress == job.work
            billed = spent + progress if finished else length
            self.left -= spent
            self.done += progress
            self.overhead += spent
            self.cost += job.workers * self.tiers[self.attempt.tier].price(tick) * billed / HOUR
            if finished:
                self.now += billed
                break
        met = finished and self.now <= limit
        return TickResult(
            cost=self.cost,
            finished=self.now - START if met else float(job.deadline),
            met=met,
            evictions=self.evictions,
            attempts=self.number,
            recomputed=self.overhead,
            ticks=tick + 1,
        )

    def _begin(self, tick: int) -> None:
        """The nodes of the last tick are charged; availability changes."""
        if self.held:
            tier = self.spec.tier(self.state.tier)
            if tier is not None:
                record, seconds = self.state.record(tier.name), float(self.held * self.job.tick)
                cost, on_demand = charged(seconds, tier.price)
                record = replace(
                    record,
                    node_seconds=record.node_seconds + seconds,
                    cost=record.cost + cost,
                    on_demand_cost=record.on_demand_cost + on_demand,
                )
                self.state = with_record(self.state, record)
        if self.attempt is None:
            return
        has = self.tiers[self.attempt.tier].has(tick)
        if self.running and not has:
            self.running = False
            self.evictions += 1
            record = self.state.record(self.attempt.tier)
            self.state = with_record(self.state, replace(record, failures=record.failures + self.job.workers))
        elif not self.running and has:
            self._start()

    def _start(self) -> None:
        self.running, self.left = True, self.job.overhead

    def _settle(self, tick: int) -> None:
        """Ask the policy until it is content."""
        unavailable = {name: NO_CAPACITY for name, entry in self.tiers.items() if not entry.has(tick)}
        progress = Progress(self.done, self.job.work, self.now if self.done else None)
        seen = Observation(0, (), progress, unavailable, offered=self.names - unavailable.keys())
        has = {name: name not in unavailable for name in self.tiers}
        self.state = with_sightings(self.state, has, self.now)
        for _ in range(DECISIONS_PER_TICK):
            if self.attempt is None:
                chosen = self.policy.choose(self._view(seen, live=False)).tier
                if chosen is None or chosen not in self.names:
                    break
                self._plan(chosen)
                if self.tiers[chosen].has(tick):
                    self._start()
            else:
                chosen = self.policy.choose(self._view(seen, live=True)).tier
                if chosen is None or chosen not in self.names or chosen == self.attempt.tier:
                    if not self._changed_stage():
                        break
                    continue
                self._leave()
        else:
            name = type(self.policy).__name__
            raise Unsettled(f"policy {name} does not settle at {self.now - START:g} s: it moves to and fro")
        self.held = self.job.workers if self.running else 0

    def _plan(self, tier: str) -> None:
        self.number += 1
        self.attempt = Attempt(self.number, tier, self.now)
        record = self.state.record(tier)
        self.state = replace(
            with_record(self.state, replace(record, attempts=record.attempts + 1)),
            stage=Stage.STARTING,
            tier=tier,
            last_number=self.number,
        )

    def _leave(self) -> None:
        """The policy ends the attempt."""
        record = replace(self.state.record(self.state.tier), last_reason=Reason.POLICY)
        self.state = replace(with_record(self.state, record), stage=Stage.IDLE)
        self.attempt, self.running = None, False

    def _changed_stage(self) -> bool:
        """Follow the stage of the lifecycle; whether it changed."""
        stage = Stage.RUNNING if self.running else self.state.stage
        if not self.running and stage is Stage.RUNNING:
            stage = Stage.RECOVERING
        changed = stage is not self.state.stage
        if changed:
            self.state = replace(self.state, stage=stage)
        return changed

    def _view(self, seen: Observation, *, live: bool) -> TierView:
        return Situation(self.spec, self.state, seen, self.now).view(live=live)
