"""Records the availability of a job's tiers and the duration of its work.

Both are kept in `JobState`, with a bounded size, so that a policy makes the same choice after a restart of the
controller.
"""

from __future__ import annotations

from collections.abc import Mapping

from spotladder.core.copying import replace
from spotladder.core.losses import with_record
from spotladder.core.model import (
    Attempt,
    AttemptRecord,
    CapacityType,
    Instant,
    JobSpec,
    JobState,
    Progress,
    Seconds,
    Spell,
    Tier,
)

SPELLS = 32
"""Maximum number of availability spells that are kept for each tier; the oldest are dropped."""


def with_sightings(state: JobState, found: Mapping[str, bool], now: Instant, last: Instant | None = None) -> JobState:
    """The state with these observations of availability at `now`. An observation like the last one extends the newest
    spell of its tier. A different one ends it now if it was observed at the `last` decision: so the length of a spell
    does not depend on the number of decisions."""
    for name, available in found.items():
        record = state.record(name)
        newest = record.spells[-1] if record.spells else None
        if newest is not None and newest.available is available:
            spells = (*record.spells[:-1], replace(newest, until=max(newest.until, now)))
        else:
            ended = record.spells
            if newest is not None and newest.until == last:
                ended = (*ended[:-1], replace(newest, until=max(newest.until, now)))
            spells = (*ended, Spell(available, now, now))[-SPELLS:]
        state = with_record(state, replace(record, spells=spells))
    return state


def with_pace(state: JobState, progress: Progress, now: Instant) -> JobState:
    """The state with the measured duration of the steps since the last commit, if one attempt made both commits."""
    before = state.progress
    steps = progress.step - before.step
    if state.progress_at is None or before.step <= 0 or steps <= 0 or progress.attempt != before.attempt:
        return state
    if state.recovering_since is not None or _recovered_since(state, state.progress_at):
        return state  # that time contains repeated steps and a wait
    return replace(
        state,
        timed_steps=state.timed_steps + steps,
        timed_seconds=state.timed_seconds + max(0.0, now - state.progress_at),
    )


def with_first_commit(state: JobState, progress: Progress) -> JobState:
    """The state with what the start of the job cost, if this is its first commit and no pod was lost before."""
    attempt = state.attempt
    if attempt is None or progress.step <= 0 or state.progress.step > 0 or attempt.start_step > 0:
        return state
    if progress.attempt != attempt.number or attempt.failures or attempt.all_ready_at != attempt.running_at:
        return state
    paid = state.node_seconds - attempt.node_seconds_before
    return replace(state, first_commit_step=progress.step, first_commit_node_seconds=paid)


def _recovered_since(state: JobState, commit: Instant) -> bool:
    """Whether the live attempt has lost and regained pods since the last commit."""
    all_ready_at = None if state.attempt is None else state.attempt.all_ready_at
    return all_ready_at is not None and all_ready_at > commit


def work_left(spec: JobSpec, state: JobState, progress: Progress) -> tuple[Seconds | None, Seconds | None]:
    """Training time of the whole job and of the steps that are not committed; None if unknown."""
    work = spec.work
    if work is None and progress.total and state.timed_steps:
        work = progress.total * state.timed_seconds / state.timed_steps
    if work is None:
        return None, None
    return work, work_after(work, progress.step, progress.total)


def work_after(work: Seconds, step: int, total: int | None) -> Seconds:
    """The part of the work after this step."""
    return work * (1.0 - (min(1.0, step / total) if total else 0.0))


def start_overhead(spec: JobSpec, state: JobState, tier: Tier) -> Seconds:
    """The time that a new attempt on this tier needs until it makes progress.

    On capacity that is not spot, this includes the longest start of the recorded attempts, since such a start has no
    other wait.
    """
    if tier.capacity_type is CapacityType.SPOT:
        return spec.overhead
    attempts = (state.attempt, *state.history)
    waits = (_wait(attempt) for attempt in attempts if attempt is not None and attempt.tier == tier.name)
    return spec.overhead + max(waits, default=0.0)


def _wait(attempt: Attempt | AttemptRecord) -> Seconds:
    began = attempt.created_at if isinstance(attempt, Attempt) else attempt.started_at
    return 0.0 if attempt.running_at is None else attempt.running_at - began
