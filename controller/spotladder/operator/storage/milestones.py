"""When the live attempt of a job reached the milestones of its start, as its objects and its heartbeat say."""

from __future__ import annotations

from collections.abc import Iterator

from spotladder.core.contract import Milestone
from spotladder.core.model import Attempt, Instant, JobState, PodRole
from spotladder.operator.loaded import Loaded
from spotladder.workloads.workload import AttemptObjects


def reached(loaded: Loaded, state: JobState) -> dict[Milestone, Instant]:
    """The milestones with their times, each by the clock that recorded it. Unknown ones are left out."""
    attempt, found = state.attempt, loaded.found.attempts
    times = dict(_of_objects(attempt, found[attempt.number].objects)) if attempt and attempt.number in found else {}
    beat = loaded.reading.heartbeat
    if beat is not None and attempt is not None and loaded.reading.progress.attempt == attempt.number:
        times.update(beat.reached)
    return times


def _of_objects(attempt: Attempt, objects: AttemptObjects) -> Iterator[tuple[Milestone, Instant]]:
    top, pods = objects.top, [pod for pod in objects.pods if pod.role is not PodRole.AUXILIARY]
    if top is not None and top.created_at is not None:
        yield Milestone.LAUNCHED, top.created_at
    if attempt.running_at is not None:  # Before, some of its pods may not exist yet.
        programs = [pod.program_container for pod in pods]
        yield from _last(Milestone.SCHEDULED, [pod.scheduled_at for pod in pods])
        yield from _last(Milestone.CONTAINERS, [one.running_since if one else None for one in programs])
    if top is not None and top.program_at is not None:
        yield Milestone.PROGRAM, top.program_at


def _last(milestone: Milestone, times: list[Instant | None]) -> Iterator[tuple[Milestone, Instant]]:
    """The time at which the last of them reached the milestone, if all have."""
    known = [at for at in times if at is not None]
    if known and len(known) == len(times):
        yield milestone, max(known)
