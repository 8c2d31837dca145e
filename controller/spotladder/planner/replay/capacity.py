"""The capacity of each tier during a recorded run, as far as the run observed it.

1. While an attempt is on a tier, its capacity is known: all workers from the start of the attempt that became ready,
   one node less from each loss on, none while an attempt waits without success. An elastic attempt has the nodes with
   which its program trains.
2. Between attempts the only sources are pools that report their own changes (local runs) and the tiers' availability
   spells.
3. The rest is unknown (None). A replay runs with two assumptions: unknown capacity is the last known one, or none; or
   it is complete. The true result lies between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from spotladder.core.model import TERMINAL, CapacityType, Instant, JobSpec, JobState, Seconds, Spell, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.display.records import Lost, Moved, PoolChanged, Record, Resized

CAPACITY_LOSSES = frozenset(
    {Cause.INTERRUPTION, Cause.PREEMPTED, Cause.CONSOLIDATED, Cause.NODE_LOST, Cause.DELETED, Cause.UNKNOWN}
)
"""Causes after which the tier has one node less."""

LOSS_REASONS = frozenset({Reason.EVICTION_NOTICE, Reason.RECOVERY_TIMEOUT, Reason.MAX_FAILURES_EXCEEDED})
"""End reasons of attempts that prove a lost node if the record has no loss for the attempt."""

WAITED_REASONS = frozenset({Reason.INSUFFICIENT_CAPACITY, Reason.QUEUE_TIMEOUT})
"""Ends of attempts that were never ready because their tier had no capacity."""

OVER = frozenset({Stage.IDLE, Stage.SUSPENDED}) | TERMINAL
"""Stages without an attempt."""

READY_AFTER: Seconds = 180.0
"""Time from a launch until all workers are ready, if no attempt of the record was ever ready."""


@dataclass(frozen=True, slots=True)
class TierCapacity:
    """The capacity of one tier. `changes` are (seconds after the start, number of nodes), ascending; None: unknown from
    there on. `ready_after` is the time from a launch until all workers are ready, and `notice` that of its losses, both
    in seconds."""

    name: str
    changes: tuple[tuple[Seconds, int | None], ...]
    ready_after: Seconds
    notice: Seconds

    @property
    def uncertain(self) -> bool:
        """Whether a part of it is unknown."""
        return not self.changes or self.changes[0][0] > 0 or any(nodes is None for _at, nodes in self.changes)

    def assumed(self, workers: int, *, complete: bool) -> list[tuple[Seconds, int]]:
        """The changes without unknown ones. `complete`: unknown capacity is `workers` nodes; otherwise it is as it was
        last known, at first none."""
        known, found = 0, []
        for at, nodes in ((0.0, None), *self.changes):
            known = known if nodes is None else nodes
            found.append((at, workers if nodes is None and complete else known))
        return found


@dataclass
class _RecordedAttempt:
    """One attempt of the record; times are in seconds after the start. `sizes` are the numbers of workers with which an
    elastic program trained."""

    tier: str
    began: Seconds
    ready: list[Seconds] = field(default_factory=list)
    losses: list[tuple[Seconds, bool]] = field(default_factory=list)
    sizes: list[tuple[Seconds, int]] = field(default_factory=list)
    ended: Seconds | None = None
    reason: Reason | None = None

    @property
    def first_ready(self) -> Seconds:
        """When all workers were ready for the first time."""
        return min(self.ready, default=math.inf)

    @property
    def early(self) -> list[Seconds]:
        """The losses during the start, oldest first."""
        return sorted(at for at, _noticed in self.losses if at < self.first_ready)

    @property
    def waited(self) -> Seconds:
        """How long its workers took to be ready, since it began or since the newest loss during the start."""
        return self.first_ready - max([self.began, *self.early])


def recorded_capacity(
    records: Sequence[Record], state: JobState, spec: JobSpec, began: Instant
) -> tuple[TierCapacity, ...]:
    """The capacity of every tier of the spec. `began` is the time of the start; the capacity of tiers that are not spot
    is never unknown."""
    attempts = _attempts(records, began)
    waits = [one.waited for one in attempts if one.ready]
    found = []
    for tier in spec.tiers:
        on_tier = [one for one in attempts if one.tier == tier.name]
        own = [one.waited for one in on_tier if one.ready]
        ready_after = min(own, default=min(waits, default=READY_AFTER))
        reports = _reports(records, tier.name, began)
        changes = _used(on_tier, spec.workers, ready_after)
        changes |= _between(on_tier, reports, state.record(tier.name).spells, spec.workers, began)
        changes = {at: 0 if nodes is None and _dry(reports, at) else nodes for at, nodes in changes.items()}
        if tier.capacity_type is not CapacityType.SPOT:
            known = {at: spec.workers if nodes is None else nodes for at, nodes in changes.items()}
            changes = {0.0: spec.workers, **known}
        noticed = [noticed for one in on_tier for _at, noticed in one.losses]
        notice = tier.notice if 2 * sum(noticed) >= len(noticed) else 0.0
        found.append(TierCapacity(tier.name, tuple(sorted(changes.items(), key=_time)), ready_after, notice))
    return tuple(found)


def _after_start(at: Instant, began: Instant) -> Seconds:
    """Seconds after the start. The runner needs a moment to launch the first attempt, so the first second is 0."""
    return 0.0 if at - began < 1.0 else at - began


def _time(entry: tuple[Seconds, int | None]) -> Seconds:
    return entry[0]


def _attempts(records: Iterable[Record], began: Instant) -> list[_RecordedAttempt]:
    """The attempts of the record, in their order."""
    found: dict[int, _RecordedAttempt] = {}
    for record in records:
        at = _after_start(record.at, began)
        if isinstance(record, Lost) and record.loss.attempt in found:
            if record.loss.cause in CAPACITY_LOSSES:
                found[record.loss.attempt].losses.append((at, record.loss.noticed))
        elif isinstance(record, Resized) and record.attempt in found:
            found[record.attempt].sizes.append((at, record.workers))
        elif isinstance(record, Moved):
            move = record.move
            if move.target is Stage.STARTING:
                found[move.attempt] = _RecordedAttempt(move.tier, at)
            elif move.attempt in found:
                _advance(found[move.attempt], move.target, move.reason, at)
    for one in found.values():
        if not one.losses and one.ended is not None and one.reason in LOSS_REASONS:
            one.losses.append((one.ended, one.reason is Reason.EVICTION_NOTICE))
    return list(found.values())


def _advance(attempt: _RecordedAttempt, target: Stage, reason: Reason, at: Seconds) -> None:
    if target is Stage.RUNNING:
        attempt.ready.append(at)
    elif target is not Stage.RECOVERING and target is not Stage.REPLACING and attempt.reason is None:
        attempt.reason = reason
    if target in OVER and attempt.ended is None:
        attempt.ended = at


def _used(attempts: Iterable[_RecordedAttempt], workers: int, ready_after: Seconds) -> dict[Seconds, int | None]:
    """The capacity while attempts were on the tier, unknown after each of them."""
    found: dict[Seconds, int | None] = {}
    short = 0  # The nodes of an attempt that waits: those that the attempt before it left, if one was lost.
    for one in attempts:
        had = one.sizes[0][1] if one.sizes else workers
        start = _until_ready(one, had, short, ready_after)
        found |= start
        last = max(start)
        if one.ready:
            changes = _after(one, had, ready_after)
            found |= changes
            last = max(changes, default=one.first_ready)
            left = changes.get(last, had)
            short = 0 if left is None or left == workers else left
        elif one.early:
            short = start[last]
        if one.ended is not None:
            found[max(one.ended, last + 1)] = None
    return found


def _until_ready(attempt: _RecordedAttempt, workers: int, short: int, ready_after: Seconds) -> dict[Seconds, int]:
    """The changes until the attempt is first ready with this number of workers, or until it ends: a node less at each
    loss, all nodes before it is ready. `short` is the number of nodes while it waits."""
    began, early, late = attempt.began, attempt.early, attempt.waited > ready_after + 1
    if early:  # It would have been ready by then with all nodes.
        nodes = workers if early[0] <= began + ready_after else max(early.count(early[0]), min(short, workers - 1))
    elif attempt.ready:
        nodes = short if late else workers
    else:
        nodes = short if attempt.reason in {*WAITED_REASONS, None} else workers
    found = {began: nodes}
    for at in early:
        nodes = max(0, nodes - 1)
        found[at] = nodes
    if attempt.ready and (late or early):
        found[max([attempt.first_ready - ready_after, *(at + 1 for at in early)])] = workers
    return found


def _after(attempt: _RecordedAttempt, workers: int, ready_after: Seconds) -> dict[Seconds, int | None]:
    """The changes after the attempt was first ready with this number of workers: a node less at each loss, all nodes
    before it is ready again. An elastic attempt has more nodes before it trains with more."""
    found: dict[Seconds, int | None] = {}
    first = attempt.first_ready
    nodes, since = workers, first
    if attempt.sizes:
        restart = attempt.sizes[0][0] - first
        grown = [(at - restart, size) for at, size in attempt.sizes[1:]]
    else:
        grown = [(at, workers) for at in attempt.ready]
    events = [*grown, *((at, None) for at, _noticed in attempt.losses)]
    for at, size in sorted((event for event in events if event[0] >= first), key=_time):
        if size is None:
            nodes, since = max(0, nodes - 1), at
            found[at] = nodes
        elif nodes < size:
            nodes = size
            found[max(since + 1, at - ready_after)] = size
    return found


def _reports(records: Iterable[Record], tier: str, began: Instant) -> list[tuple[Seconds, bool]]:
    """When the tier's pool reported that it gained or lost its capacity."""
    changes = (record for record in records if isinstance(record, PoolChanged) and record.tier == tier)
    return [(_after_start(change.at, began), change.available) for change in changes]


def _dry(reports: Iterable[tuple[Seconds, bool]], at: Seconds) -> bool:
    """Whether the newest report of the pool by then says that it has no capacity."""
    newest = [available for since, available in reports if since <= at]
    return bool(newest) and not newest[-1]


def _between(
    attempts: Sequence[_RecordedAttempt],
    reports: Sequence[tuple[Seconds, bool]],
    spells: Sequence[Spell],
    workers: int,
    began: Instant,
) -> dict[Seconds, int | None]:
    """The known capacity of the tier while no attempt is on it."""

    def used(at: Seconds) -> bool:
        return any(one.began <= at and (one.ended is None or at <= one.ended) for one in attempts)

    found: dict[Seconds, int | None] = {}
    for spell in spells:
        since, until = _after_start(spell.since, began), _after_start(spell.until, began)
        if not used(since) and not used(until):
            found[since] = workers if spell.available else 0
            found[until + 1] = None
    for at, available in reports:
        if not used(at):
            found[at] = workers if available else 0
    return found
