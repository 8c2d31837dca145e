"""The fast path of the tick world: the same policies and the same views, without the lifecycle around them.

In the tick world an attempt starts, stops and is lost within a tick, nothing fails to start and no tier is exhausted.
`decide` then only asks the policy until the policy keeps its choice. `run` does the same, and skips in one step all
ticks in which the availability of no tier changes and which `TierChoice.holds_until` covers, and those of a wait and of
the capacity that ends it which `TierChoice.until_lost` covers. A property test shows that its result is that of
`drive.run`, and that both show the policy the same views at the ticks that it does not skip.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from itertools import repeat
from operator import call
from typing import ClassVar

from spotladder.core.accounting import charged
from spotladder.core.model import (
    FOR_EVER,
    NO_OUTCOMES,
    CapacityType,
    Instant,
    JobSpec,
    Outcomes,
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
from spotladder.core.work import work_after
from spotladder.sim.oscillation import PolicyOscillates
from tests.bench.ticks.capacity import ALWAYS, capacity_of
from tests.bench.ticks.drive import DECISIONS_PER_TICK
from tests.bench.ticks.job import NEVER, START, TickJob, TickResult, TickTier, cost_of


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
    """The state that a run keeps of one tier: the values that its `TierRecord` and `TierOutlook` show. `seen` is the
    number of changes of its capacity so far, `change` the tick of the next one."""

    __slots__ = (
        "attempts",
        "capacity",
        "change",
        "cost",
        "entry",
        "failures",
        "has",
        "last",
        "name",
        "node_seconds",
        "on_demand",
        "outlooks",
        "seen",
        "since",
    )

    def __init__(self, entry: TickTier, overhead: Seconds, length: int) -> None:
        self.entry, self.name = entry, entry.tier.name
        self.capacity = ALWAYS if entry.available is None else capacity_of(tuple(entry.available), length)
        self.has, self.seen, self.since = self.capacity.first, 0, START
        self.change = self.capacity.changes[0]
        self.failures = self.attempts = 0
        self.node_seconds = self.cost = self.on_demand = 0.0
        self.last: Reason | None = None
        self.outlooks = (TierOutlook(self.name, False, overhead), TierOutlook(self.name, True, overhead))

    def see(self, tick: int, length: int) -> None:
        """Record all changes of availability until this tick of `length` seconds."""
        changes, seen = self.capacity.changes, self.seen
        while changes[seen] <= tick:
            seen += 1
        if seen > self.seen:
            self.has, self.since = self.capacity.first is (seen % 2 == 0), START + changes[seen - 1] * length
            self.seen, self.change = seen, changes[seen]

    def charge(self, seconds: float, price: Price) -> None:
        """Add node-seconds at this price."""
        cost, on_demand = charged(seconds, price)
        self.node_seconds += seconds
        self.cost += cost
        self.on_demand += on_demand

    def spells(self, now: Instant) -> tuple[Spell, ...]:
        """The newest spells, oldest first."""
        return (*self.capacity.closed(self.seen), Spell(self.has, self.since, now))

    def record(self, now: Instant) -> TierRecord:
        """The record in the format of the job's state."""
        return TierRecord(
            self.name,
            self.failures,
            self.attempts,
            self.node_seconds,
            self.cost,
            self.on_demand,
            last_reason=self.last,
            spells=self.spells(now),
            fleet=self.entry.tier.fleet,
        )


class _View(TierView):
    """A view whose `progress`, `records` and `spent_usd` are computed when a policy reads them, which it may do only
    while it chooses. `run` does not read the explanation of a choice."""

    __slots__ = ("run",)

    explained: ClassVar[bool] = False

    run: _Run

    def __getattr__(self, name: str) -> object:
        value: object
        if name in {"records", "spent_usd"}:
            self.run.charge()
        if name == "progress":
            value = self.run.progress()
        elif name == "records":
            value = tuple([state.record(self.now) for state in self.run.states])
        elif name == "spent_usd":
            value = sum([state.cost for state in self.run.states])
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, value)
        return value

    def spells(self, name: str) -> tuple[Spell, ...]:
        """The same as those of `records`."""
        state = self.run.tiers.get(name)
        return () if state is None else state.spells(self.now)

    def fleet(self, name: str) -> Outcomes:
        """The same as that of `records`."""
        state = self.run.tiers.get(name)
        return NO_OUTCOMES if state is None else state.entry.tier.fleet


class _Run:
    """One run. `current` is the tier of the live attempt or of the last one, `held` its node-seconds that are not
    charged yet."""

    def __init__(self, job: TickJob, policy: Policy) -> None:
        self.job, self.policy = job, policy
        self._use(job.spec())
        self.tiers = {entry.tier.name: _TierState(entry, float(job.overhead), job.tick) for entry in job.tiers}
        self.states = tuple(self.tiers.values())
        self.names = frozenset(self.tiers)
        self.current: _TierState | None = None
        self.live = self.running = False
        self.held = self.left = self.done = self.overhead = self.number = self.evictions = 0
        self.waiting_since: Instant | None = None
        self.now = START
        self.change = -1
        self.known: dict[tuple[bool, ...], tuple[frozenset[str], tuple[TierOutlook, ...]]] = {}

    def run(self) -> TickResult:
        job, length = self.job, self.job.tick
        ticks, tick, finished, varying, stays = -(-job.deadline // length), 0, False, job.varying, False
        billed: dict[float, int] = {}
        while tick < ticks and not finished:
            self.now = START + tick * length
            if varying:
                self._use(job.spec(tick))
                self.charge()  # at the new price, as `decide` does
            if self.change <= tick:
                self._see(tick)
            if stays and self.current is not None:
                stays, following = False, self.current.change
            else:
                choice = self._decide()
                if not self.running:
                    self._waits()
                following = tick + 1 if varying else self._next(tick, choice)
                stays = choice.until_lost and not varying and self._stays_from(following, choice)
            following = min(following, ticks)
            current = self.current
            if not self.running or current is None:
                tick = following
                continue
            room = (following - tick) * length
            starting = min(self.left, room)
            progress = min(room - starting, job.work - self.done)
            self.done += progress
            if self.done == job.work:
                finished, room = True, starting + progress
                self.now += room
            self.left -= starting
            self.overhead += starting
            self.held += job.workers * room
            price = current.entry.price(tick)
            billed[price] = billed.get(price, 0) + job.workers * room
            tick += -(-room // length)
        met = finished and self.now <= START + job.deadline
        return TickResult(
            cost=cost_of(billed),
            finished=self.now - START if met else float(job.deadline),
            met=met,
            evictions=self.evictions,
            attempts=self.number,
            recomputed=float(self.overhead),
            ticks=tick,
        )

    def charge(self) -> None:
        """Charge the nodes that `current` has held since the last charge."""
        current, held = self.current, self.held
        if held and current is not None:
            current.charge(float(held), self.prices[current.name])
            self.held = 0

    def _use(self, spec: JobSpec) -> None:
        """Use the prices of this spec from now on."""
        self.spec, self.prices = spec, {tier.name: tier.price for tier in spec.tiers}

    def _next(self, tick: int, choice: TierChoice) -> int:
        """The first tick after this one in which the choice may differ."""
        holds_until = choice.holds_until
        if holds_until is None:
            return tick + 1
        current = self.current
        following = current.change if choice.regardless_of_spot and current is not None else self.change
        if holds_until < FAR:
            return min(following, max(tick + 1, math.ceil((holds_until - START - EXACT) / self.job.tick)))
        return following

    def _stays_from(self, tick: int, choice: TierChoice) -> bool:
        """Whether the attempt waits for capacity, gets it in this tick and then stays until it is lost."""
        current = self.current
        if self.running or current is None or current.change != tick:
            return False
        return choice.holds_until is not None and choice.holds_until > START + tick * self.job.tick + EXACT

    def _see(self, tick: int) -> None:
        """Update the availability and the live attempt, and note which tiers have capacity and when the next change
        is."""
        states = self.states
        for state in states:
            if state.change <= tick:
                state.see(tick, self.job.tick)
        self.change = min([state.change for state in states])
        has = tuple([state.has for state in states])
        known = self.known.get(has)
        if known is None:
            available = frozenset([state.name for state in states if state.has])
            known = self.known[has] = available, tuple([state.outlooks[state.has] for state in states])
        self.available, self.outlooks = known
        current = self.current
        if not self.live or current is None or current.has is self.running:
            return
        if self.running:
            self.running = False
            self.evictions += 1
            current.failures += self.job.workers
        else:
            self._start()

    def _start(self) -> None:
        self.running, self.left, self.waiting_since = True, self.job.overhead, None

    def _decide(self) -> TierChoice:
        """Ask the policy until it keeps its choice, or promises to keep it after the move."""
        for _ in range(DECISIONS_PER_TICK):
            choice = self.policy.choose(self._view())
            chosen, current = choice.tier, self.current
            if chosen is None or chosen not in self.names:
                return choice
            promised = choice.holds_until is not None and choice.holds_until > self.now
            if self.live and current is not None:
                if chosen == current.name:
                    return choice
                current.last = Reason.POLICY
                self.live = self.running = False
                self._waits()
                if not promised:
                    continue
            self._plan(self.tiers[chosen])
            if promised:
                return choice
        raise PolicyOscillates(self.policy, self.now - START)

    def _plan(self, tier: _TierState) -> None:
        self.charge()
        self.number += 1
        tier.attempts += 1
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

    def _starting(self) -> Seconds:
        if not self.live:
            return 0.0
        return float(self.left if self.running else self.job.overhead)

    def progress(self) -> Progress:
        """All work is committed at once."""
        return Progress(self.done, self.job.work, self.now if self.done else None)

    def _view(self) -> TierView:
        """The same as `Situation.view` at this moment."""
        spec = self.spec
        view = object.__new__(_View)
        values = (
            self.now,
            self.current.name if self.current is not None else "",
            spec.tiers,
            self.names,
            self.available,
            self.live,
            spec.deadline,
            self.outlooks,
            spec.work,
            work_after(self.job.work, self.done, self.job.work),
            spec.submitted_at,
            spec.decision_interval,
            spec.grace,
            self._waiting_since(),
            spec.capacity_lasts,
            self._starting(),
            spec.workers,
            spec.budget,
            0.0,
            self,
        )
        any(map(call, _STORES, repeat(view), values))
        return view


_LAZY = frozenset({"progress", "records", "spent_usd"})
"""Fields of a `_View` that are computed when they are read."""

_STORES: tuple[Callable[[TierView, object], None], ...] = tuple(
    [getattr(_View, name).__set__ for name in (*(one.name for one in fields(TierView) if one.name not in _LAZY), "run")]
)
"""Sets each other field of a `_View`; several times faster than the constructor."""

FAR: Instant = START + 1e12
"""A `holds_until` beyond this moment counts as infinite."""

EXACT: Seconds = 1e-3
"""Tolerance for the rounding of sums of times; much less than a tick."""
