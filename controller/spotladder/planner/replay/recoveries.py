"""The losses from which a job recovered inside an attempt, where the record of a job on a cluster lacks them.

The state of the job has its newest losses, with the times at which all workers were ready again, and the record has
them, too. It has one before them only as long as Kubernetes keeps its Event, and not the recovery from it. For these,
the state tells more about each attempt:

1. How many failures were counted. So it is known how many losses the record lacks.
2. The groups of ranks whose heartbeats were observed. If the steps of the next group begin at a smaller one, or if it
   has fewer workers, a worker was lost when the heartbeats of the group before it stopped, and training went on when
   those of the next one began.
3. The availability spells. If the tier had no capacity in between, they tell when all workers were ready again. Without
   heartbeats they tell the loss, too.
4. How it ended. If a loss ended it, one of the missing losses was the last event of the attempt.

The record of a run on this machine has all of it, and stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from spotladder.core.losses import UNCOUNTED
from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    FailureUnit,
    Instant,
    JobSpec,
    JobState,
    Loss,
    Move,
    Seconds,
    Spell,
    Stage,
)
from spotladder.core.observing import GROUPS
from spotladder.core.reasons import Cause, Reason
from spotladder.display.records import Committed, Lost, Moved, Record, Resized
from spotladder.planner.replay.capacity import CAPACITY_LOSSES, LOSS_REASONS, WAITED_REASONS

LOSS_ENDS = LOSS_REASONS | {Reason.HEAD_LOST, Reason.VANISHED, Reason.INTERRUPTED, Reason.PREEMPTED}
"""Ends of attempts that are a counted loss of capacity."""

WAITED_ENDS = WAITED_REASONS | {Reason.RECOVERY_TIMEOUT, Reason.CLUSTER_UNREACHABLE}
"""Ends of attempts that waited in vain after a loss."""

LATE: Seconds = 60.0
"""Maximum time for which steps are observed after a loss without a notice, or for which Kubernetes marks it late."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """The records with the recoveries that the state tells. `placed` is the number of losses that were added,
    `unplaced` that of counted failures whose time is unknown."""

    records: tuple[Record, ...]
    placed: int
    unplaced: int


@dataclass(frozen=True, slots=True)
class _Stop:
    """An interval without training: from the last observed step until the next one. All workers were ready again at
    `ready`; None if that is unknown. At least `nodes` were lost. `workers` is the number of workers of an elastic
    program after it; 0: all, or unknown."""

    since: Instant
    until: Instant
    ready: Instant | None = None
    nodes: int = 1
    workers: int = 0


@dataclass(frozen=True, slots=True)
class _Known:
    """What the record has of one attempt: its counted losses before those that the state keeps, its losses of capacity
    after its start, when all workers were ready again, and its commits. `noticed`: other losses on its tier are assumed
    to have had a notice."""

    counted: tuple[Instant, ...]
    losses: tuple[Instant, ...]
    ready: tuple[Instant, ...]
    commits: tuple[Instant, ...]
    noticed: bool


def with_recoveries(records: Sequence[Record], state: JobState, spec: JobSpec) -> Recovered:
    """The record of the job with these losses and recoveries."""
    attempts: list[Attempt | AttemptRecord] = [*state.history, *([state.attempt] if state.attempt is not None else [])]
    startup = _startup(attempts)
    found: list[Record] = []
    placed = unplaced = 0
    for attempt in attempts:
        if attempt.running_at is None:
            continue
        more, left = _missing(attempt, _known(records, attempt, attempt.running_at, state), state, spec, startup)
        placed += sum(isinstance(record, Lost) for record in more)
        unplaced += left
        found += more
    if not found:
        return Recovered(tuple(records), 0, unplaced)
    return Recovered(tuple(sorted([*records, *found], key=lambda record: record.at)), placed, unplaced)


def _known(records: Sequence[Record], attempt: Attempt | AttemptRecord, began: Instant, state: JobState) -> _Known:
    number, kept = attempt.number, state.losses[0].at if state.losses else math.inf
    losses = [one for one in records if isinstance(one, Lost) and one.loss.attempt == number]
    return _Known(
        tuple(one.at for one in losses if one.loss.cause not in UNCOUNTED and one.at < kept),
        tuple(one.at for one in losses if one.loss.cause in CAPACITY_LOSSES and one.at >= began),
        tuple(
            one.at
            for one in records
            if isinstance(one, Moved) and one.move.attempt == number and one.move.target is Stage.RUNNING
        ),
        tuple(one.at for one in records if isinstance(one, Committed) and one.attempt == number),
        _noticed(records, attempt.tier),
    )


def _noticed(records: Sequence[Record], tier: str) -> bool:
    """Whether a loss on the tier is assumed to have had a notice: as most of those in the record."""
    found = [one.loss.noticed for one in records if isinstance(one, Lost) and one.loss.tier == tier]
    return 2 * sum(found) >= len(found)


def _startup(attempts: Sequence[Attempt | AttemptRecord]) -> Seconds:
    """The usual time from ready workers to the first observed step."""
    first = (
        (one.running_at, one.steps[0]) for one in attempts if one.running_at is not None and 0 < len(one.steps) < GROUPS
    )
    return median([max(0.0, group.first_at - ready) for ready, group in first] or [0.0])


def _missing(
    attempt: Attempt | AttemptRecord, known: _Known, state: JobState, spec: JobSpec, startup: Seconds
) -> tuple[list[Record], int]:
    """The records that are missing for this attempt, and the number of its failures whose time is unknown."""
    elastic = spec.min_workers is not None
    stops = _stops(attempt, () if elastic else state.record(attempt.tier).spells)
    kept = sum(loss.failures for loss in state.losses if loss.attempt == attempt.number)
    missing = max(0, attempt.failures - kept - _failures(known.counted, stops, spec))
    found: list[Record] = []

    def lose(at: Instant, nodes: int) -> None:
        loss = Loss("", Cause.UNKNOWN, attempt.number, attempt.tier, noticed=known.noticed)
        found.extend(Lost(at, loss, 0) for _ in range(nodes))

    if missing and not _between(known.losses, stops[-1].until if stops else 0.0, math.inf):
        if (last := _last(attempt, state)) is not None:
            lose(last, 1)
            missing -= 1
        elif isinstance(attempt, AttemptRecord) and attempt.reason is Reason.STALLED:
            missing -= 1  # this failure is no loss
    # A notice can come long before the heartbeats stop: a loss belongs to the first stop that ends after it.
    ends = [0.0, *(stop.until for stop in stops)]
    windows = zip(stops, [_between(known.losses, *window) for window in pairwise(ends)], strict=True)
    lost = {stop: max(losses) for stop, losses in windows if losses}
    for stop in sorted(stops, key=lambda stop: stop.since - stop.until):
        if stop not in lost and missing:
            nodes = min(stop.nodes, missing)
            lose(stop.since, nodes)
            missing -= nodes
            lost[stop] = stop.since
    for stop, at in lost.items():
        if not _between(known.ready, at, stop.until):
            ready = max(stop.since, at, stop.until - startup) if stop.ready is None else stop.ready
            found.append(_whole(attempt, ready))
            if elastic and stop.workers:
                found.append(Resized.of(stop.until, attempt.number, stop.workers, spec))
    if not elastic and (handed_over := _handed_over(attempt, known, stops, spec)) is not None:
        found.append(_whole(attempt, handed_over))
    return found, missing


def _failures(counted: Sequence[Instant], stops: Sequence[_Stop], spec: JobSpec) -> int:
    """How many failures these losses of an attempt were."""
    if spec.failure_unit is FailureUnit.POD:
        return len(counted)
    ends = [0.0, *(stop.until for stop in stops), math.inf]
    return sum(bool(_between(counted, after, until)) for after, until in pairwise(ends))


def _whole(attempt: Attempt | AttemptRecord, at: Instant) -> Moved:
    return Moved(at, Move(Stage.RECOVERING, Stage.RUNNING, Reason.ALL_READY, attempt.number, attempt.tier))


def _last(attempt: Attempt | AttemptRecord, state: JobState) -> Instant | None:
    """When the last worker was lost, if the attempt did not recover from that; else None. One that waited for another
    worker made no more steps from the loss on."""
    if isinstance(attempt, Attempt):
        return state.recovering_since
    if attempt.reason in WAITED_ENDS and attempt.steps:
        return attempt.steps[-1].last_at
    return attempt.ended_at if attempt.reason in LOSS_ENDS | WAITED_ENDS else None


def _between(times: Sequence[Instant], after: Instant, until: Instant) -> list[Instant]:
    """Those of these times after the first and until the second one."""
    return [at for at in times if after < at <= until]


def _stops(attempt: Attempt | AttemptRecord, spells: Sequence[Spell]) -> list[_Stop]:
    """The intervals without training within the attempt, oldest first."""
    begins = attempt.running_at or 0.0
    ends = attempt.ended_at if isinstance(attempt, AttemptRecord) else math.inf
    back = [
        _Stop(dry.since, has.since, has.since)
        for dry, has in pairwise(spells)
        if has.available and not dry.available and begins < dry.since and has.since <= ends
    ]
    found = []
    for before, after in pairwise(attempt.steps):
        nodes = before.workers - after.workers if before.workers and after.workers else 0
        if nodes < 0 or (nodes == 0 and after.first > before.last):
            continue  # the program has grown
        stop = _Stop(before.last_at, after.first_at, None, max(1, nodes), after.workers)
        ready = [one.until for one in back if stop.since <= one.until <= stop.until]
        found.append(replace(stop, ready=max(ready, default=None)))
    seen = [one for one in back if not any(one.since <= other.until and other.since <= one.until for other in found)]
    return sorted([*found, *seen], key=lambda stop: stop.since)


def _handed_over(
    attempt: Attempt | AttemptRecord, known: _Known, stops: Sequence[_Stop], spec: JobSpec
) -> Instant | None:
    """When the lost workers had been replaced, if the same ranks made steps long after the newest loss; else None."""
    losses = [at for at in known.losses if not stops or at > stops[-1].until]
    tier = spec.tier(attempt.tier)
    if not losses or tier is None:
        return None
    replaced = max(losses) + max(tier.notice, LATE)
    if any(at > max(losses) for at in known.ready):
        return None
    trained = [*known.commits, *(group.last_at for group in attempt.steps)]
    return replaced if any(at > replaced for at in trained) else None
