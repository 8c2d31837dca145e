"""The fast path of the tick world: the same policies and the same views, without the lifecycle around them.

In the tick world an attempt starts, stops and is lost within a tick, nothing fails to start and no tier is exhausted.
What `decide` does then is little: it asks the policy until the policy is content. `run` does only that. A property test
shows that it gives the same result and the same views as `drive.run` for any policy.
"""

from __future__ import annotations

from spotladder.core.accounting import HOUR, charged
from spotladder.core.availability import SPELLS, work_left
from spotladder.core.model import (
    FOR_EVER,
    CapacityType,
    Instant,
    JobState,
    Progress,
    Spell,
    TierOutlook,
    TierRecord,
    TierView,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import Reason
from spotladder.sim.oscillation import PolicyOscillates
from spotladder.sim.ticks.drive import DECISIONS_PER_TICK
from spotladder.sim.ticks.job import NEVER, START, TickJob, TickResult, TickTier


def supports(job: TickJob) -> bool:
    """Whether the fast path holds for this job: no tier can be exhausted, and only spot capacity comes and goes."""
    return all(
        entry.tier.max_failures == FOR_EVER
        and entry.tier.provision_timeout >= NEVER
        and (entry.available is None or entry.tier.capacity_type is CapacityType.SPOT)
        for entry in job.tiers
    )


def run(job: TickJob, policy: Policy) -> TickResult:
    """The same as `drive.run` for a job that `supports` accepts."""
    return _Run(job, policy).run()


class _TierState:
    """What a run remembers of one tier: what its `TierRecord` and `TierOutlook` show."""

    __slots__ = ("attempts", "cost", "entry", "failures", "has", "last", "node_seconds", "on_demand", "spells")

    def __init__(self, entry: TickTier) -> None:
        self.entry = entry
        self.has = False
        self.failures = self.attempts = 0
        self.node_seconds = self.cost = self.on_demand = 0.0
        self.last: Reason | None = None
        self.spells: tuple[Spell, ...] = ()

    def see(self, tick: int, now: Instant) -> None:
        """The availability of this tick, as a sighting."""
        self.has = self.entry.has(tick)
        newest = self.spells[-1] if self.spells else None
        if newest is not None and newest.available is self.has:
            self.spells = (*self.spells[:-1], Spell(self.has, newest.since, now))
        else:
            self.spells = (*self.spells, Spell(self.has, now, now))[-SPELLS:]

    def record(self) -> TierRecord:
        """As the job's state has it."""
        return TierRecord(
            self.entry.tier.name,
            self.failures,
            self.attempts,
            self.node_seconds,
            self.cost,
            self.on_demand,
            last_reason=self.last,
            spells=self.spells,
        )


class _Run:
    """One run. `current` is the tier of the live attempt or of the last one."""

    def __init__(self, job: TickJob, policy: Policy) -> None:
        self.job, self.policy, self.spec = job, policy, job.spec()
        self.tiers = {entry.tier.name: _TierState(entry) for entry in job.tiers}
        self.names = frozenset(self.tiers)
        self.current: _TierState | None = None
        self.live = self.running = False
        self.held = self.left = self.done = self.number = self.evictions = 0
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
            self._decide()
            if not self.running or self.current is None:
                continue
            spent = min(self.left, length)
            progress = min(length - spent, job.work - self.done)
            finished = self.done + progress == job.work
            billed = spent + progress if finished else length
            self.left -= spent
            self.done += progress
            self.overhead += spent
            self.cost += job.workers * self.current.entry.price(tick) * billed / HOUR
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
        current = self.current
        if self.held and current is not None:
            tier = self.spec.tier(current.entry.tier.name)
            if tier is not None:
                seconds = float(self.held * self.job.tick)
                cost, on_demand = charged(seconds, tier.price)
                current.node_seconds += seconds
                current.cost += cost
                current.on_demand += on_demand
        for state in self.tiers.values():
            state.see(tick, self.now)
        if not self.live or current is None:
            return
        if self.running and not current.has:
            self.running = False
            self.evictions += 1
            current.failures += self.job.workers
        elif not self.running and current.has:
            self._start()

    def _start(self) -> None:
        self.running, self.left = True, self.job.overhead

    def _decide(self) -> None:
        """Ask the policy until it is content."""
        progress = Progress(self.done, self.job.work, self.now if self.done else None)
        for _ in range(DECISIONS_PER_TICK):
            chosen = self.policy.choose(self._view(progress)).tier
            current = self.current
            if not self.live or current is None:
                if chosen is None or chosen not in self.names:
                    break
                self._plan(self.tiers[chosen])
            elif chosen is None or chosen not in self.names or chosen == current.entry.tier.name:
                break
            else:
                current.last = Reason.POLICY
                self.live = self.running = False
        else:
            raise PolicyOscillates(self.policy, self.now - START)
        self.held = self.job.workers if self.running else 0

    def _plan(self, tier: _TierState) -> None:
        self.number += 1
        tier.attempts += 1
        self.current, self.live = tier, True
        if tier.has:
            self._start()

    def _view(self, progress: Progress) -> TierView:
        """The same as `Situation.view` at this moment."""
        spec, states = self.spec, self.tiers.values()
        work, remaining = work_left(spec, _NOTHING_TIMED, progress)
        return TierView(
            now=self.now,
            current=self.current.entry.tier.name if self.current is not None else "",
            tiers=spec.tiers,
            records=tuple([state.record() for state in states]),
            open=self.names,
            available=frozenset([name for name, state in self.tiers.items() if state.has]),
            live=self.live,
            progress=progress,
            deadline=spec.deadline,
            spent_usd=sum([state.cost for state in states]),
            outlooks=tuple([TierOutlook(state.entry.tier.name, state.has, spec.overhead) for state in states]),
            work=work,
            remaining=remaining,
            submitted_at=spec.submitted_at,
            interval=spec.decision_interval,
            grace=spec.grace,
        )


_NOTHING_TIMED = JobState()
"""The work is known from the spec: none was timed."""
