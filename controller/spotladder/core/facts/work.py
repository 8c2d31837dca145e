"""How much training a job still needs.

Rules
 1. `JobSpec.work` is the training time of the whole job. Without it, that is the total number of steps times the pace.
 2. The total is the one that the program reported last, in a heartbeat or in a commit.
 3. The pace is the mean duration of the steps between two commits without a start of the program in between. Before
    the first two commits it is that of the steps that heartbeats reported.
 4. The pace is that with all workers. An elastic program keeps its batch, so with fewer workers it makes steps at a
    speed that is proportional to their number.
 5. Steps that are not committed are still to be done.

All of it is kept in `JobState`, so that a restarted controller computes the same.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.model import Instant, JobSpec, JobState, Progress, Seconds

CLOCK_TOLERANCE: Seconds = 60.0
"""Maximum difference between two measurements of the time between two commits: by the clock of the job's machine, and
by the reads of the log."""


def with_total(state: JobState, total: int) -> JobState:
    """The state with this total number of steps; 0: the program has not reported one."""
    measured = state.measured
    return replace(state, measured=replace(measured, total=total)) if total and total != measured.total else state


def speed(workers: int, of: int) -> float:
    """The speed of a program that trains with this number of workers, relative to that with all of its workers. 0
    workers: all of them, or their number is unknown."""
    return workers / of if workers else 1.0


def with_pace(state: JobState, spec: JobSpec, progress: Progress, now: Instant) -> JobState:
    """The state with the measured duration of the steps since the last commit, if the program made both without a
    restart."""
    before = state.progress
    steps = progress.step - before.step
    if state.progress_at is None or before.step <= 0 or steps <= 0 or progress.attempt != before.attempt:
        return state
    if state.timers.recovering_since is not None or _recovered_since(state, state.progress_at):
        return state  # that time contains repeated steps and a wait
    if state.attempt is not None and before.step <= state.attempt.start_step:
        return state  # an earlier attempt made that commit, and the log already had the start of this one
    if 0 <= before.commit < progress.start:
        return state  # the program has restarted since, for example with more workers
    took = _between(before, progress, max(0.0, now - state.progress_at)) * speed(progress.workers, spec.workers)
    so_far = state.measured
    measured = replace(so_far, timed_steps=so_far.timed_steps + steps, timed_seconds=so_far.timed_seconds + took)
    return replace(state, measured=measured)


def _between(before: Progress, after: Progress, observed: Seconds) -> Seconds:
    """The time between two commits of one attempt: by the clock of its machine, unless that contradicts the time
    between their observations. The clock may have been set meanwhile."""
    if before.committed_at is None or after.committed_at is None:
        return observed
    logged = after.committed_at - before.committed_at
    return logged if logged > 0 and abs(logged - observed) <= CLOCK_TOLERANCE else observed


def _recovered_since(state: JobState, commit: Instant) -> bool:
    """Whether the live attempt has lost and regained pods since the last commit."""
    all_ready_at = None if state.attempt is None else state.attempt.all_ready_at
    return all_ready_at is not None and all_ready_at > commit


def pace(spec: JobSpec, state: JobState) -> Seconds | None:
    """The mean duration of a step with all workers; None if unknown."""
    if state.measured.timed_steps:
        return state.measured.timed_seconds / state.measured.timed_steps
    groups = () if state.attempt is None else state.attempt.steps
    steps = sum(group.last - group.first for group in groups)
    took = sum((group.last_at - group.first_at) * speed(group.workers, spec.workers) for group in groups)
    return took / steps if steps else None


def work_left(spec: JobSpec, state: JobState, progress: Progress) -> tuple[Seconds | None, Seconds | None]:
    """Training time of the whole job and of the steps that are not committed; None if unknown."""
    work, total = spec.work, progress.total
    if work is None:
        total, step = state.measured.total or progress.total, pace(spec, state)
        work = total * step if total and step is not None else None
    if work is None:
        return None, None
    return work, work_after(work, progress.step, total)


def work_after(work: Seconds, step: int, total: int | None) -> Seconds:
    """The part of the work after this step."""
    return work * (1.0 - (min(1.0, step / total) if total else 0.0))
