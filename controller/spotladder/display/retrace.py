"""Rebuilds the timeline of a job on a cluster, where no runner has recorded one.

The controller stores the job's state and the commit log its commits. The state has the steps between commits only as
far as the controller has read heartbeats. So:

1. Attempts, their times, failures and ends come from the history in the state, which holds the newest attempts.
2. Work is measured by heartbeats and commits, or by commits alone if an attempt has no heartbeats. Without the commit
   log it is measured by the steps at which attempts began and ended.
3. The number of workers of an elastic job over time comes from the starts of its program in the commit log, and from
   the heartbeats of attempts that the log does not have.
4. The cost is known for each tier. `retraced_bills` divides it over time.
5. The newest losses, and when all workers were ready again, come from the state. Events, which Kubernetes keeps for
   about an hour, are added as notes, and have the losses before those. No figure of the costs depends on them.

The report says what is missing for these reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from spotladder.core.model import TERMINAL, AttemptRecord, Instant, JobSpec, JobState, Move, Stage
from spotladder.core.moving import launch_reason
from spotladder.core.reasons import FAILED_EXIT_CODES, Reason
from spotladder.display.figures import numbered
from spotladder.display.kept_losses import recoveries, with_kept
from spotladder.display.records import (
    Beat,
    Began,
    Committed,
    Ended,
    Looked,
    Lost,
    Moved,
    Noted,
    Record,
    Recorded,
    Resized,
)
from spotladder.display.retraced_bills import bills

Entry = TypeVar("Entry", Committed, Resized)
"""What the commit log says about an attempt."""


def retraced(
    job: str,
    namespace: str,
    spec: JobSpec,
    state: JobState,
    *,
    commits: Sequence[Committed] | None,
    sizes: Sequence[Resized] = (),
    noted: Iterable[Lost | Noted] = (),
    policies: tuple[str, str] = ("ordered", ""),
    now: Instant,
) -> Recorded:
    """The timeline until `now`, or until the job ended. With `commits` None, the commit log could not be read. `sizes`
    are the changes of the number of workers of an elastic job, oldest first. `policies` are the names of the policy and
    of the shadow policy."""
    attempts = _attempts(state, now)
    missing = sum(tier.attempts for tier in state.tiers) - len(attempts)
    began = attempts[0].started_at if missing > 0 and attempts else spec.submitted_at
    records: list[Record] = []
    before = ""
    for attempt in attempts:
        records += _moves(attempt, before, spec, state)
        records += recoveries(state.losses, attempt)
        before = attempt.tier
    sizes = _sizes(sizes, attempts, spec)
    records += sizes
    records += bills(attempts, sizes, state, spec.workers)
    records += _work(attempts, commits, state)
    records += [record for record in with_kept(state.losses, noted) if record.at >= began]
    if state.stage in TERMINAL:
        records += _end(state, attempts)
    # Records of one moment keep their order, but a loss comes before the move that it causes.
    records.sort(key=lambda record: (record.at, not isinstance(record, Lost)))
    last = max([began, *(record.at for record in records)])
    if state.stage not in TERMINAL:
        records.append(Looked(max(last, now)))
    opening = Began(min([began, *(record.at for record in records)]), job, namespace, spec, False, *policies)
    return Recorded((opening, *records), gaps=tuple(_gaps(attempts, sizes, spec, missing, known=commits is not None)))


def _attempts(state: JobState, now: Instant) -> list[AttemptRecord]:
    """The attempts in the state; a live one ends now."""
    live = state.attempt
    if live is None:
        return list(state.history)
    ends = max(now, live.created_at, live.running_at or 0.0)
    reason, step = live.end_reason or state.reason, max(live.start_step, state.progress.step)
    running = AttemptRecord(
        live.number,
        live.tier,
        live.created_at,
        live.running_at,
        ends,
        reason,
        live.failures,
        live.start_step,
        step,
        live.steps,
    )
    return [*state.history, running]


def _moves(attempt: AttemptRecord, before: str, spec: JobSpec, state: JobState) -> Iterator[Moved]:
    number, tier = attempt.number, attempt.tier
    message = f"attempt {number} on {tier}" + (f", from {before}" if before not in ("", tier) else "")
    yield Moved(
        attempt.started_at, Move(Stage.IDLE, Stage.STARTING, launch_reason(spec, before, tier), number, tier, message)
    )
    stage = Stage.STARTING
    if attempt.running_at is not None:
        yield Moved(attempt.running_at, Move(stage, Stage.RUNNING, Reason.ALL_READY, number, tier))
        stage = Stage.RUNNING
    live = state.attempt
    if live is None or live.number != number:
        last = state.stage in TERMINAL and attempt.ended_at == state.ended_at
        message = state.message if last else ""
        target = state.stage if last else Stage.IDLE
        yield Moved(attempt.ended_at, Move(stage, target, attempt.reason, number, tier, message))
    elif live.ending_since is not None:
        yield Moved(live.ending_since, Move(stage, Stage.ENDING, attempt.reason, number, tier))
    elif state.recovering_since is not None:
        yield Moved(state.recovering_since, Move(stage, Stage.RECOVERING, Reason.RECOVERING, number, tier))


def _end(state: JobState, attempts: Sequence[AttemptRecord]) -> Iterator[Moved | Ended]:
    at = state.ended_at if state.ended_at is not None else state.clock
    if not attempts or attempts[-1].ended_at != at:
        yield Moved(at, Move(Stage.IDLE, state.stage, state.reason, state.last_number, state.tier, state.message))
    code = 0 if state.stage is Stage.SUCCEEDED else FAILED_EXIT_CODES.get(state.reason, 1)
    yield Ended(at, code, state.reason, state.message)


# --- work ------------------------------------------------------------------------------------------------------------


def _work(
    attempts: Sequence[AttemptRecord], commits: Sequence[Committed] | None, state: JobState
) -> Iterator[Committed | Beat]:
    """The commits. Without commits, the step of each attempt at its end."""
    if commits is not None:
        placed = _placed(commits, attempts)
        yield from placed
        if _measured(attempts):
            for attempt in attempts:
                yield from _beats(attempt, [commit for commit in placed if commit.attempt == attempt.number])
        return
    progress = state.progress
    for attempt in attempts:
        if attempt.end_step > attempt.start_step:
            newest = progress.committed_at if attempt.number == progress.attempt else None
            at = attempt.ended_at if newest is None else min(max(newest, attempt.started_at), attempt.ended_at)
            yield Beat(at, attempt.number, attempt.end_step, progress.total)


def _placed(entries: Sequence[Entry], attempts: Sequence[AttemptRecord]) -> list[Entry]:
    """The entries of known attempts, each within its attempt: the clocks of the job's machines are not trusted."""
    bounds = {attempt.number: attempt for attempt in attempts}
    return [
        replace(entry, at=min(max(entry.at, within.started_at), within.ended_at))
        for entry in entries
        if (within := bounds.get(entry.attempt))
    ]


def _measured(attempts: Sequence[AttemptRecord]) -> bool:
    """Whether the heartbeats of every attempt that has committed are known."""
    return any(attempt.steps for attempt in attempts) and all(
        attempt.steps or attempt.end_step <= attempt.start_step for attempt in attempts
    )


def _beats(attempt: AttemptRecord, commits: Sequence[Committed]) -> Iterator[Beat]:
    """The steps of an attempt at its heartbeats and commits. A commit counts for the group of ranks that had started
    before it."""
    total = max((commit.total for commit in commits), default=0)
    since = attempt.started_at
    for index, steps in enumerate(attempt.steps):
        until = attempt.steps[index + 1].first_at if index + 1 < len(attempt.steps) else attempt.ended_at
        points = [(steps.first_at, steps.first), (steps.last_at, steps.last)]
        points += [(commit.at, commit.step) for commit in commits if since <= commit.at <= until]
        since, highest = until, 0
        for at, step in sorted(points):
            if step >= highest:
                highest = step
                yield Beat(min(max(at, attempt.started_at), attempt.ended_at), attempt.number, step, total)


# --- sizes -----------------------------------------------------------------------------------------------------------


def _sizes(logged: Sequence[Resized], attempts: Sequence[AttemptRecord], spec: JobSpec) -> list[Resized]:
    placed = _placed(logged, attempts)
    known = {change.attempt for change in placed}
    return [*placed, *(change for one in attempts if one.number not in known for change in _by_heartbeats(one, spec))]


def _by_heartbeats(attempt: AttemptRecord, spec: JobSpec) -> Iterator[Resized]:
    """The changes of the number of workers that were observed with the steps of the attempt."""
    before = 0
    for steps in attempt.steps:
        if steps.workers and steps.workers != before:
            before = steps.workers
            yield Resized.of(steps.first_at, attempt.number, before, spec)


# --- missing data ----------------------------------------------------------------------------------------------------


def _gaps(
    attempts: Sequence[AttemptRecord], sizes: Sequence[Resized], spec: JobSpec, missing: int, *, known: bool
) -> Iterator[str]:
    if missing > 0:
        older = "1 earlier attempt is" if missing == 1 else f"{missing} earlier attempts are"
        yield f"The newest {len(attempts)} attempts are shown; {older} included only in the totals of the tiers."
    if not known:
        yield "Without the commit log, commits and losses are not shown; an attempt's work is spread over its time."
    elif attempts and not _measured(attempts):
        yield "Steps are known when they were committed: what an attempt did after its last commit counts as idle time."
    sized = {change.attempt for change in sizes}
    unsized = [one for one in attempts if one.end_step > one.start_step and one.number not in sized]
    if spec.min_workers is not None and unsized:
        yield f"The number of workers of {numbered(len(unsized), 'attempt')} is not known: all workers count."
    tiers = [attempt.tier for attempt in attempts]
    if len(set(tiers)) < len(tiers):
        size = " and their numbers of workers" if sized else ""
        yield f"A tier's cost is divided among its attempts by the time that they ran{size}."
