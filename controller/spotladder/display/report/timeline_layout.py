"""The content of the timeline of a run, for every drawing of it: a lane for each tier with the bars of its attempts,
the times without capacity and the marks of events, and below them the step over time.

Places are times in seconds of the run, and lanes counted from the top. A drawing adds its own sizes and colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from spotladder.core.model import CapacityType, Seconds
from spotladder.display.figures import clock, count, span
from spotladder.display.report.attempts import AttemptFacts, Span
from spotladder.display.report.axes import apart
from spotladder.display.report.facts import Facts

MARK_WIDTH = 10
"""Width of a mark, and minimum distance of two marks, in units of the drawing."""

NUMBER_WIDTH = 18
"""Minimum width of an attempt with its number, in units of the drawing."""

NUMBERED_BAR_WIDTH = 16
"""Minimum width of the bar with the number, in units of the drawing."""

POINTS = 500
"""Maximum number of points of a curve; more are not visible."""


class BarKind(StrEnum):
    """The state of an attempt, as the legend names it."""

    WAITING = "waiting"
    READY = "all workers ready"
    WORK = "steps done"


class MarkKind(StrEnum):
    """An event, as the legend names it."""

    COMMIT = "commit"
    NOTICE = "eviction notice"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Bar:
    kind: BarKind
    span: Span


@dataclass(frozen=True, slots=True)
class AttemptBars:
    """The bars of one attempt, a later one over an earlier one. `number_at` is the position of its number; None if
    there is no room for it."""

    number: int
    capacity_type: CapacityType
    lane: int
    text: str
    bars: tuple[Bar, ...]
    number_at: Seconds | None
    works: bool


@dataclass(frozen=True, slots=True)
class DrySpan:
    """A tier's time without capacity."""

    lane: int
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class TierChange:
    """The end of an attempt that the next attempt followed on another tier."""

    at: Seconds
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class LaneMark:
    """A group of `number` events; the first was at `at`."""

    kind: MarkKind
    at: Seconds
    lane: int
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """The timeline of a run. `progress` has the step over time, with a drop where work must be done again."""

    tiers: tuple[str, ...]
    length: Seconds
    dry: tuple[DrySpan, ...]
    attempts: tuple[AttemptBars, ...]
    changes: tuple[TierChange, ...]
    marks: tuple[LaneMark, ...]
    highest_step: int
    progress: tuple[tuple[Seconds, int], ...]


def timeline_layout(facts: Facts, width: float) -> TimelineLayout:
    """The layout of a run for a drawing whose axis of time is `width` units long."""
    tiers = tuple(tier.name for tier in facts.spec.tiers)
    lanes = {name: index for index, name in enumerate(tiers)}
    length = facts.length or 1.0
    unit = length / width
    attempts = [attempt for attempt in facts.attempts if attempt.tier in lanes]
    return TimelineLayout(
        tiers,
        length,
        tuple(
            DrySpan(lanes[name], dry, f"{name}: no capacity, {clock(dry.start)} – {clock(dry.end)}")
            for name in tiers
            for dry in facts.dry.get(name, ())
        ),
        tuple(_bars(attempt, lanes[attempt.tier], unit) for attempt in attempts),
        tuple(
            TierChange(before.end, lanes[before.tier], lanes[after.tier])
            for before, after in pairwise(attempts)
            if before.tier != after.tier
        ),
        tuple(_marks(facts, lanes, MARK_WIDTH * unit)),
        max(facts.total, facts.steps, 1),
        tuple(_thinned(facts.progress)),
    )


def _bars(attempt: AttemptFacts, lane: int, unit: Seconds) -> AttemptBars:
    bars = [Bar(BarKind.WAITING, Span(attempt.start, attempt.end))]
    bars += [Bar(BarKind.READY, each) for each in attempt.all_ready]
    bars += [Bar(BarKind.WORK, each) for each in attempt.work]
    room = attempt.end - attempt.start >= NUMBER_WIDTH * unit
    if attempt.work:
        room = room and attempt.work[0].seconds >= NUMBERED_BAR_WIDTH * unit
    start = attempt.work[0].start if attempt.work else attempt.start
    text = f"attempt {attempt.number} on {attempt.tier}: {attempt.reason}, {span(attempt.end - attempt.start)}"
    return AttemptBars(
        attempt.number, attempt.capacity_type, lane, text, tuple(bars), start if room else None, bool(attempt.work)
    )


def _marks(facts: Facts, lanes: Mapping[str, int], least: Seconds) -> Iterator[LaneMark]:
    """All commits, notices and failures. Events closer than `least` share a mark, which shows their number."""
    for commit in facts.commits:
        if commit.tier in lanes:
            text = f"step {count(commit.step)} committed at {clock(commit.at)}"
            yield LaneMark(MarkKind.COMMIT, commit.at, lanes[commit.tier], 1, text)
    for kind, events in (
        (MarkKind.NOTICE, [(mark, f"{mark.what}: eviction notice at {clock(mark.at)}") for mark in facts.notices]),
        (MarkKind.FAILURE, [(mark, f"lost {mark.what} at {clock(mark.at)}") for mark in facts.evictions]),
    ):
        marked = sorted((mark.at, lanes[mark.tier], text) for mark, text in events if mark.tier in lanes)
        for at, lane, number in apart([(at, lane) for at, lane, _ in marked], least):
            texts = [text for other, row, text in marked if row == lane and at <= other < at + least][:number]
            yield LaneMark(kind, at, int(lane), number, "; ".join(texts))


def _thinned(curve: Sequence[tuple[Seconds, int]]) -> list[tuple[Seconds, int]]:
    """At most about `POINTS` points of the curve, with both ends of each drop: the curve is drawn to show them."""
    falls = [index for index in range(1, len(curve)) if curve[index][1] < curve[index - 1][1]]
    kept = {*range(0, len(curve), -(-len(curve) // POINTS) or 1), *falls, *(index - 1 for index in falls)}
    return [curve[index] for index in sorted({*kept, *([len(curve) - 1] if curve else [])})]
