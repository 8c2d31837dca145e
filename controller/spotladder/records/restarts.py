"""Where the time of each restart goes: from the loss, the notice, or the resumption of a stopped job to the first step
of the next attempt.

A restart is a sequence of points, in the order of their times. A part ends at the point that it is named after, and
begins at the point before it: the time to a point that was not observed belongs to the next one that was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from spotladder.core.contract import Milestone
from spotladder.core.model import Instant, Move, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import LIVE
from spotladder.records.model import (
    Beat,
    Began,
    Committed,
    Launched,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Reached,
    Record,
    Resized,
)


class Point(StrEnum):
    """What is decided between two attempts, before the milestones of the second one, in the usual order."""

    LOST = "lost"  # the first loss or notice that ends the attempt, or its end without one
    DECIDED = "decided"  # the attempt is to end
    COMMITTED = "committed"  # its last commit after the notice
    ENDED = "ended"  # nothing of it runs any more
    PLANNED = "planned"  # the next attempt is decided


Step = Point | Milestone
_ORDER: tuple[Step, ...] = (*Point, *Milestone)

NAMES: dict[Step, str] = {
    Point.DECIDED: "decision",
    Point.COMMITTED: "last commit",
    Point.ENDED: "end of the attempt",
    Point.PLANNED: "wait for a tier",
    Milestone.LAUNCHED: "launch",
    Milestone.SCHEDULED: "nodes",
    Milestone.CONTAINERS: "image and container",
    Milestone.PROGRAM: "start of the program",
    Milestone.IMPORTED: "imports",
    Milestone.JOINED: "connection of ranks",
    Milestone.RESTORED: "checkpoint",
    Milestone.STEPPED: "first step",
}
"""The name of the part that ends at each point, for users."""


@dataclass(frozen=True, slots=True)
class Part:
    """The time until `step` was reached."""

    step: Step
    begin: Instant
    end: Instant

    @property
    def name(self) -> str:
        return NAMES[self.step]

    @property
    def seconds(self) -> Seconds:
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class Restart:
    """How this attempt came to its first step. `reason` is why it was planned. `noticed`: the loss was announced."""

    attempt: int
    tier: str
    reason: Reason
    noticed: bool
    parts: tuple[Part, ...]

    @property
    def complete(self) -> bool:
        """Whether its first step was observed."""
        return bool(self.parts) and self.parts[-1].step is Milestone.STEPPED

    @property
    def seconds(self) -> Seconds:
        return self.parts[-1].end - self.parts[0].begin if self.parts else 0.0


@dataclass(slots=True)
class _Start:
    """An attempt whose start is being read: its points, whose times may be those of a standby attempt."""

    move: Move
    noticed: bool
    times: dict[Step, Instant]


@dataclass(slots=True)
class _Reader:
    """Reads the records in their order. `times` are the points of the end of attempt `number`, while it trains none."""

    number: int = 0
    noticed: bool = False
    times: dict[Step, Instant] = field(default_factory=dict)
    early: dict[int, dict[Step, Instant]] = field(default_factory=dict)
    starts: dict[int, _Start] = field(default_factory=dict)
    committed: int = 0

    def read(self, record: Record) -> None:
        match record:
            case Began(at=at):
                self._resume(at)
            case Moved(at=at, move=move):
                self._move(at, move)
            case Resized():
                self._continue()
            case Lost(at=at, loss=loss) if loss.attempt == self.number and Point.LOST not in self.times:
                self.times[Point.LOST], self.noticed = at, loss.noticed
            case Launched(at=at, attempt=number):
                self._reach(number, Milestone.LAUNCHED, at)
            case Reached(at=at, attempt=number, milestone=milestone):
                self._reach(number, milestone, at)
            case NodeChanged(at=at, attempt=number, change=NodeChange.UP):
                times = self._times(number)
                if Milestone.PROGRAM not in times and Milestone.STEPPED not in times:
                    times[Milestone.SCHEDULED] = at  # The last of the nodes on this machine.
            case Committed(at=at, attempt=number, step=step):
                if number == self.number and Point.LOST in self.times:
                    self.times[Point.COMMITTED] = at
                elif step > self.committed:
                    self._reach(number, Milestone.STEPPED, at)
                self.committed = max(self.committed, step)
            case Beat(at=at, attempt=number, step=step) if step > self.committed:
                self._reach(number, Milestone.STEPPED, at)

    def _move(self, at: Instant, move: Move) -> None:
        if move.source is Stage.SUSPENDED:
            self._resume(at)
        if move.target is Stage.STARTING:
            if self.starts:
                self.times.setdefault(Point.LOST, at)
            times = {**self.early.pop(move.attempt, {}), **self.times, Point.PLANNED: at}
            self.starts[move.attempt] = _Start(move, self.noticed, times)
            self.number = move.attempt
            self._continue()
        elif move.target is Stage.RUNNING:
            self._continue()
        elif move.target not in LIVE and move.attempt == self.number:
            self.times.setdefault(Point.LOST, at)
            self.times.setdefault(Point.DECIDED, at)
            if move.target not in (Stage.DRAINING, Stage.ENDING):
                self.times.setdefault(Point.ENDED, at)

    def _resume(self, at: Instant) -> None:
        if self.starts:
            self.times, self.noticed = {Point.LOST: at}, False

    def _continue(self) -> None:
        self.times, self.noticed = {}, False

    def _times(self, number: int) -> dict[Step, Instant]:
        start = self.starts.get(number)
        return self.early.setdefault(number, {}) if start is None else start.times

    def _reach(self, number: int, milestone: Milestone, at: Instant) -> None:
        self._times(number).setdefault(milestone, at)


def restarts(records: Iterable[Record]) -> tuple[Restart, ...]:
    """The restart of each attempt after the first, in order, with the parts that were observed."""
    reader = _Reader()
    for record in records:
        reader.read(record)
    return tuple(
        Restart(number, start.move.tier, start.move.reason, start.noticed, tuple(_parts(start.times)))
        for number, start in list(reader.starts.items())[1:]
    )


def _parts(times: dict[Step, Instant]) -> Iterator[Part]:
    """What a standby attempt reached before the loss took no time of the restart."""
    points = sorted((at, _ORDER.index(step), step) for step, at in times.items() if at >= times[Point.LOST])
    ends = [place for place, (_, _, step) in enumerate(points) if step is Milestone.STEPPED]
    for (begin, _, _), (end, _, step) in pairwise(points[: ends[0] + 1] if ends else points):
        yield Part(step, begin, end)


def average(found: Iterable[Restart]) -> list[tuple[str, Seconds]]:
    """For each part that was observed, its name and its mean duration in the complete restarts: their sum is the mean
    duration of a restart."""
    complete = [one for one in found if one.complete]
    sums: dict[Step, Seconds] = {}
    for part in (part for one in complete for part in one.parts):
        sums[part.step] = sums.get(part.step, 0.0) + part.seconds
    return [(NAMES[step], sums[step] / len(complete)) for step in _ORDER if step in sums]
