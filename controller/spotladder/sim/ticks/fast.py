"""The fast path of the tick world: the same policies and the same views, without the lifecycle around them.

In the tick world an attempt starts, stops and is lost within a tick, nothing fails to start and no tier is exhausted.
`decide` then only asks the policy until the policy keeps its choice. `run` does the same, and skips in one step all
ticks in which the availability of no tier changes and which `TierChoice.holds_until` covers. A property test shows that
its result is that of `drive.run`, and that both show the policy the same views at the ticks that `run` does not skip.
"""

from __future__ import annotations

import math
import sys
from collections import Counter

from spotladder.core.accounting import charged
from spotladder.core.availability import SPELLS, work_left
from spotladder.core.model import (
    FOR_EVER,
    CapacityType,
    Instant,
    JobState,
    Price,
    Progress,
    Seconds,
    Spell,
    TierChoice,
    TierOutlook,
    TierRecord,
    TierView,
)
from spotladder.core.policies import Policy
from spotladder.core.reasons import Reason
from spotladder.sim.oscillation import PolicyOscillates
from spotladder.sim.ticks.drive import DECISIONS_PER_TICK
from spotladder.sim.ticks.job import NEVER, START, TickJob, TickResult, TickTier, cost_of


def supports(job: TickJob) -> bool:
    """Whether the fast path is valid for this job: no tier can be exhausted, and only spot capacity changes."""
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
    """The state that a run keeps of one tier: the values that its `TierRecord` and `TierOutlook` show."""

    def __init__(self, entry: TickTier, overhead: Seconds) -> None:
        self.entry, self.overhead = entry, overhead
        self.flags = None if entry.available is None else bytes(map(bool, entry.available))
        self.tick, self.has = 0, self.flags is None or self.flags[0] == 1
        self.failures = self.attempts = 0
        self.node_seconds = self.cost = self.on_demand = 0.0
        self.last: Reason | None = None
        self.ended: tuple[Spell, ...] = ()
        self.since = self.until = START
        self.outlooks = tuple([TierOutlook(entry.tier.name, has, overhead) for has in (False, True)])
        self._next: int | None = None
        self._record: TierRecord | None = None

    def see(self, tick: int, length: int) -> bool:
        """Record the availability of all ticks of `length` seconds since the last recorded one. Whether it changed."""
        changed = False
        while 0 <= (change := self.change()) <= tick:
            spell = Spell(self.has, self.since, START + change * length)
            self.ended = (*self.ended, spell)[1 - SPELLS :]
            self.tick, self.has, self.since = change, not self.has, START + change * length
            self._next, changed = None, True
        self.tick, self.until = tick, START + tick * length
        self._record = None
        return changed

    def change(self) -> int:
        """The first tick after the last recorded one at which the availability changes; -1 if it never does."""
        if self._next is None:
            self._next = -1 if self.flags is None else self.flags.find(not self.has, self.tick + 1)
        return self._next

    def charge(self, seconds: float, price: Price) -> None:
        """Add node-seconds at this price."""
        cost, on_demand = charged(seconds, price)
        self.node_seconds += seconds
        self.cost += cost
        self.on_demand += on_demand
        self._record = None

    def forget(self) -> None:
        """Drop the cached record after a change."""
        self._record = None

    def record(self) -> TierRecord:
        """The record in the format of the job's state."""
        if self._record is None:
            self._record = TierRecord(
                self.entry.tier.name,
                self.failures,
                self.attempts,
                self.node_seconds,
                self.cost,
                self.on_demand,
                last_reason=self.last,
                spells=(*self.ended, Spell(self.has, self.since, self.until)),
                fleet=self.entry.tier.fleet,
            )
        return self._record


class _Run:
    """One run. `current` is the tier of the live attempt or of the last one, `held` the node-seconds since the last
    decision."""

    def __init__(self, job: TickJob, policy: Policy) -> None:
        self.job, self.policy, self.spec = job, policy, job.spec()
        self.tiers = {entry.tier.name: _TierState(entry, self.spec.overhead) for entry in job.tiers}
        self.states = tuple(self.tiers.values())
        self.names = frozenset(self.tiers)
        self.current: _TierState | None = None
        self.live = self.running = False
        self.held = self.left = self.done = self.number = self.evictions = 0
        self.overhead = 0.0
        self.waiting_since: Instant | None = None
        self.billed: Counter[float] = Counter()
        self.now = START
        self._outlook()

    def run(self) -> TickResult:
        job, length = self.job, self.job.tick
        ticks, tick, finished, varying = -(-job.deadline // length), 0, False, job.varying
        while tick < ticks and not finished:
            self.now = START + tick * length
            if varying:
                self.spec = job.spec(tick)
            self._begin(tick)
            choice = self._decide()
            if not self.running:
                self._waits()
            following = tick + 1 if varying else min(ticks, self._next(tick, choice))
            if not self.running or self.current is None:
                tick = following
                continue
            room = (following - tick) * length
            spent = min(self.left, room)
            progress = min(room - spent, job.work - self.done)
            finished = self.done + progress == job.work
            billed = spent + progress if finished else room
            self.left -= spent
            self.done += progress
            self.overhead += spent
            self.held = job.workers * billed
            self.billed[self.current.entry.price(tick)] += self.held
            tick += -(-billed // length)
            if finished:
                self.now += billed
        met = finished and self.now <= START + job.deadline
        return TickResult(
            cost=cost_of(self.billed),
            finished=self.now - START if met else float(job.deadline),
            met=met,
            evictions=self.evictions,
            attempts=self.number,
            recomputed=self.overhead,
            ticks=tick,
        )

    def _next(self, tick: int, choice: TierChoice) -> int:
        """The first tick after this one in which the choice may differ."""
        if choice.holds_until is None:
            return tick + 1
        following = sys.maxsize
        if choice.holds_until < FAR:
            following = max(tick + 1, math.ceil((choice.holds_until - START - EXACT) / self.job.tick))
        for state in (self.current,) if choice.regardless_of_spot and self.current is not None else self.states:
            change = state.change()
            if 0 <= change < following:
                following = change
        return following

    def _begin(self, tick: int) -> None:
        """Charge the nodes since the last decision and update the availability."""
        current = self.current
        if self.held and current is not None:
            tier = self.spec.tier(current.entry.tier.name)
            if tier is not None:
                current.charge(float(self.held), tier.price)
            self.held = 0
        changed = [state.see(tick, self.job.tick) for state in self.states]
        if any(changed):
            self._outlook()
        if not self.live or current is None:
            return
        if self.running and not current.has:
            self.running = False
            self.evictions += 1
            current.failures += self.job.workers
            current.forget()
        elif not self.running and current.has:
            self._start()

    def _outlook(self) -> None:
        """Note which tiers have capacity."""
        self.available = frozenset([state.entry.tier.name for state in self.states if state.has])
        self.outlooks = tuple([state.outlooks[state.has] for state in self.states])

    def _start(self) -> None:
        self.running, self.left, self.waiting_since = True, self.job.overhead, None

    def _decide(self) -> TierChoice:
        """Ask the policy until it keeps its choice."""
        progress = Progress(self.done, self.job.work, self.now if self.done else None)
        for _ in range(DECISIONS_PER_TICK):
            choice = self.policy.choose(self._view(progress))
            chosen, current = choice.tier, self.current
            if not self.live or current is None:
                if chosen is None or chosen not in self.names:
                    return choice
                self._plan(self.tiers[chosen])
            elif chosen is None or chosen not in self.names or chosen == current.entry.tier.name:
                return choice
            else:
                current.last = Reason.POLICY
                current.forget()
                self.live = self.running = False
                self._waits()
        raise PolicyOscillates(self.policy, self.now - START)

    def _plan(self, tier: _TierState) -> None:
        self.number += 1
        tier.attempts += 1
        tier.forget()
        if tier is not self.current:
            self.waiting_since = None
        self.current, self.live = tier, True
        self._waits()
        if tier.has:
            self._start()

    def _waits(self) -> None:
        """Note since when the job has waited for its gang."""
        if self.waiting_since is None:
            self.waiting_since = self.now

    def _waiting_since(self) -> Instant | None:
        since, current = self.waiting_since, self.current
        waits = self.live and current is not None and not current.has
        return since if waits and since is not None and since < self.now else None

    def _view(self, progress: Progress) -> TierView:
        """The same as `Situation.view` at this moment."""
        spec, states = self.spec, self.states
        work, remaining = work_left(spec, _NOTHING_TIMED, progress)
        return TierView(
            now=self.now,
            current=self.current.entry.tier.name if self.current is not None else "",
            tiers=spec.tiers,
            records=tuple([state.record() for state in states]),
            open=self.names,
            available=self.available,
            live=self.live,
            progress=progress,
            deadline=spec.deadline,
            spent_usd=sum([state.cost for state in states]),
            outlooks=self.outlooks,
            work=work,
            remaining=remaining,
            submitted_at=spec.submitted_at,
            interval=spec.decision_interval,
            grace=spec.grace,
            waiting_since=self._waiting_since(),
        )


FAR: Instant = START + 1e12
"""A `holds_until` beyond this moment counts as infinite."""

EXACT: Seconds = 1e-3
"""Tolerance for the rounding of sums of times; much less than a tick."""

_NOTHING_TIMED = JobState()
"""The spec gives the work, so no steps are timed."""
