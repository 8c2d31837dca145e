"""The program of a recorded job as the simulator needs it: how long its starts, restarts, steps and commits took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from spotladder.core.model import Instant, JobSpec, Seconds, Stage
from spotladder.records.model import Beat, Began, Committed, Moved, Record, Specified
from spotladder.records.recorded import Recorded
from spotladder.sim.world.program import ProgramPlan


def spec_of(recorded: Recorded) -> JobSpec:
    """The spec of the job, submitted at 0."""
    spec = next(one.spec for one in reversed(recorded.records) if isinstance(one, Began | Specified))
    return replace(spec, submitted_at=0.0, deadline=None, suspend=False)


def program_of(recorded: Recorded, commit_time: Seconds) -> ProgramPlan:
    """The program, whose commits take this long."""
    records, state = recorded.records, recorded.state
    pairs = list(_commits(records))
    pace = sum(after.at - before.at for before, after in pairs) / sum(
        after.step - before.step for before, after in pairs
    )
    return ProgramPlan(
        round(state.progress.total * pace),
        median(_restarts(records, pace)),
        median(after.at - before.at for before, after in pairs),
        commit_time,
        hands_over=state.progress.hands_over,
        stands_by=state.progress.stands_by,
        commit_size=state.progress.size,
    )


def ready_after(records: Sequence[Record], tier: str) -> Seconds:
    """The shortest time from the launch of an attempt until its workers were ready, on this tier if it has one."""
    launched: dict[int, Instant] = {}
    found: list[tuple[bool, Seconds]] = []
    for record in records:
        if isinstance(record, Moved) and record.move.target is Stage.STARTING:
            launched[record.move.attempt] = record.at
        elif isinstance(record, Moved) and record.move.target is Stage.RUNNING and record.move.attempt in launched:
            found.append((record.move.tier != tier, record.at - launched.pop(record.move.attempt)))
    return min(found)[1]


def _commits(records: Sequence[Record]) -> Iterator[tuple[Committed, Committed]]:
    """Consecutive commits of one attempt between which the job did not move."""
    kept = [record for record in records if isinstance(record, Committed | Moved)]
    for before, after in pairwise(kept):
        if isinstance(before, Committed) and isinstance(after, Committed) and before.attempt == after.attempt:
            yield before, after


def _restarts(records: Sequence[Record], pace: Seconds) -> Iterator[Seconds]:
    """For each start, the time from ready workers to the first step."""
    ready: dict[int, tuple[Instant, int]] = {}
    committed = 0
    for record in records:
        if isinstance(record, Moved) and record.move.target is Stage.RUNNING:
            ready[record.move.attempt] = (record.at, committed)
        elif isinstance(record, Committed | Beat) and record.attempt in ready:
            since, step = ready[record.attempt]
            if record.step > step:
                del ready[record.attempt]
                yield max(0.0, record.at - since - (record.step - step) * pace)
        if isinstance(record, Committed):
            committed = record.step
