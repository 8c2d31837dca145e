"""Computes stretches of work, new and recomputed, from heartbeats.

A stretch is an interval in which steps were done. Steps up to the highest step reached before are recomputed, steps
beyond it are new. For a program without heartbeats, its commits are used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from spotladder.core.model import Instant, Seconds, Stage
from spotladder.core.situation import READY
from spotladder.records.model import Beat, Committed, DriverStarted, Moved, Record


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps `first` to `last` of one attempt, done between `start` and `end`. `new`: done for the first time."""

    attempt: int
    start: Instant
    end: Instant
    first: int
    last: int
    new: bool

    @property
    def seconds(self) -> Seconds:
        return self.end - self.start

    @property
    def steps(self) -> int:
        return self.last - self.first

    def steps_until(self, at: Instant) -> float:
        """The number of its steps that are done at that moment."""
        done = (at - self.start) / self.seconds if self.seconds > 0 else math.inf if at >= self.start else 0.0
        return self.steps * min(1.0, max(0.0, done))


@dataclass(slots=True)
class _Segment:
    """One process of the program: it starts at step `base`, not before `floor`, and its steps only grow."""

    attempt: int
    base: int
    floor: Instant
    points: list[tuple[Instant, int]] = field(default_factory=list)


def stretches(records: Iterable[Record], start_steps: Mapping[int, int]) -> list[Stretch]:
    """All work of a run, in order. `start_steps`: the step from which each attempt resumed, if the state has it."""
    segments = _segments(list(records), start_steps)
    usual = _pace([point for segment in segments for point in pairwise(segment.points)])
    found: list[Stretch] = []
    highest = 0
    for segment in segments:
        for (start, first), (end, last) in pairwise(_from_base(segment, usual)):
            if last <= first or end < start:
                continue
            again = min(last, max(first, highest))
            middle = start + (end - start) * (again - first) / (last - first)
            if again > first:
                found.append(Stretch(segment.attempt, start, middle, first, again, new=False))
            if last > again:
                found.append(Stretch(segment.attempt, middle, end, again, last, new=True))
            highest = max(highest, last)
    return found


def done_again(work: Iterable[Stretch], *, measured: bool) -> int | None:
    """The number of recomputed steps; None if there are no heartbeats (`measured`) for some of the work, since commits
    alone do not show it."""
    return sum(stretch.steps for stretch in work if not stretch.new) if measured else None


def _segments(records: list[Record], start_steps: Mapping[int, int]) -> list[_Segment]:
    sampled = any(isinstance(record, Beat) for record in records)
    segments: list[_Segment] = []
    committed, floor = 0, records[0].at if records else 0.0
    for record in records:
        match record:
            case DriverStarted():
                floor = record.at
            case Moved() if record.move.target in (Stage.STARTING, Stage.RUNNING) and record.move.source not in READY:
                floor = record.at
            case Beat() | Committed() if isinstance(record, Beat) is sampled:
                last = segments[-1] if segments else None
                if last is None or record.attempt != last.attempt:
                    base = min(start_steps.get(record.attempt, committed), record.step)
                    segments.append(_Segment(record.attempt, base, floor))
                elif record.step < last.points[-1][1]:  # The program restarted in place.
                    segments.append(_Segment(record.attempt, min(committed, record.step), last.points[-1][0]))
                segments[-1].points.append((record.at, record.step))
        if isinstance(record, Committed):
            committed = record.step
    return segments


def _pace(pairs: Iterable[tuple[tuple[Instant, int], tuple[Instant, int]]]) -> float | None:
    """Steps per second over these pairs of points."""
    steps, seconds = 0, 0.0
    for (start, first), (end, last) in pairs:
        if last > first and end > start:
            steps += last - first
            seconds += end - start
    return steps / seconds if steps and seconds else None


def _from_base(segment: _Segment, usual: float | None) -> list[tuple[Instant, int]]:
    """The points, preceded by the latest possible start of the steps before the first heartbeat."""
    at, step = segment.points[0]
    pace = _pace(pairwise(segment.points)) or usual
    if pace is None:
        begun = segment.floor if step > segment.base else at
    else:
        begun = at - (step - segment.base) / pace
    return [(min(at, max(begun, segment.floor)), segment.base), *segment.points]
