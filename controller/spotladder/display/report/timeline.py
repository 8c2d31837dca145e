"""The timeline of a run as inline SVG: a lane for each tier with its attempts, the times without capacity and the marks
of events, and below them the step over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from spotladder.core.model import Seconds
from spotladder.display.figures import clock, count, span
from spotladder.display.report.attempts import AttemptFacts, Span
from spotladder.display.report.axes import Scale, apart
from spotladder.display.report.charts import MARGIN, POINTS, points, svg, time_axis
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.markup import Markup, element, join

LANE = 44

MARK_WIDTH = 10
"""Width of a mark, and minimum distance of two marks, in pixels."""

NUMBER_WIDTH, NUMBERED_BAR_WIDTH = 18, 16
"""Minimum widths of an attempt with its number and of the bar with the number, in pixels."""


def timeline(facts: RunFacts, width: int) -> Markup:
    """The drawing, of this width in pixels. Events on tiers that the spec no longer has are left out."""
    left = 92 if width >= 600 else 8
    label_above = width < 600
    lane, top = LANE + (16 if label_above else 0), 26
    bottom = top + lane * len(facts.spec.tiers)
    height = bottom + 164
    x = Scale(0, facts.length or 1.0, left, width - MARGIN)
    lanes = {tier.name: top + lane * index + (16 if label_above else 0) for index, tier in enumerate(facts.spec.tiers)}
    parts: list[Markup] = []
    for name, y in lanes.items():
        parts.append(element("rect", x=left, y=y, width=width - MARGIN - left, height=LANE - 10, class_="lane", rx=3))
        parts.append(
            element("text", name, x=left, y=y - 9, class_="label")
            if label_above
            else element("text", _short(name, 12), x=left - 10, y=y + 21, class_="label end")
        )
        parts.extend(
            element(
                "rect",
                element("title", f"{name}: no capacity, {clock(dry.start)} – {clock(dry.end)}"),
                x=x(dry.start),
                y=y,
                width=_width(dry, x),
                height=LANE - 10,
                class_="dry",
            )
            for dry in facts.dry.get(name, ())
        )
    attempts = [attempt for attempt in facts.attempts if attempt.tier in lanes]
    for before, after in pairwise(attempts):
        if before.tier != after.tier:
            at, ends = x(before.end), [lanes[each.tier] + 17 for each in (before, after)]
            parts.append(element("polyline", points=" ".join(f"{at:.1f},{y}" for y in ends), class_="fall"))
    parts.extend(_attempt(attempt, x, lanes[attempt.tier]) for attempt in attempts)
    parts.extend(_marks(facts, x, lanes))
    parts.append(_steps(facts, x, bottom + 14, height - 38))
    parts.append(time_axis(facts, x, top - 6, height - 38, width))
    return svg(width, height, "Timeline of the run by tier, with evictions and commits", parts)


def signs(facts: RunFacts) -> list[tuple[Markup, str]]:
    """The legend of the timeline: symbols in a square of 12 units, with their meanings."""

    def box(kind: str) -> Markup:
        return element("rect", x=0, y=1, width=12, height=11, rx=2, class_=kind)

    number = join(box("work spot"), element("text", "1", x=3, y=10.5, class_="number"))
    commit = element("path", d="M6,12 v-10", class_="commit")
    eviction = element("path", d="M2,2 l8,8 m0,-8 l-8,8", class_="eviction")
    notice = element("path", d="M6,1 l5,5 l-5,5 l-5,-5 z", class_="notice")
    return [
        (number, "number of the attempt"),
        (box("work spot"), "steps done"),
        (box("ready spot"), "all workers ready"),
        (box("waiting spot"), "waiting"),
        (commit, "commit"),
        *([(eviction, "failure")] if facts.evictions else []),
        *([(notice, "eviction notice")] if facts.notices else []),
        *([(element("rect", x=0, y=1, width=12, height=11, class_="dry"), "no capacity")] if facts.dry else []),
    ]


def _attempt(attempt: AttemptFacts, x: Scale, y: float) -> Markup:
    """The bars of an attempt, a later one over an earlier one, with its number if there is room for it."""
    whole, kind = Span(attempt.start, attempt.end), str(attempt.capacity_type)
    spans = [
        ("waiting", whole),
        *(("ready", one) for one in attempt.all_ready),
        *(("work", one) for one in attempt.work),
    ]
    bars = [
        element("rect", x=x(one.start), y=y + 4, width=_width(one, x), height=LANE - 18, class_=f"{name} {kind}", rx=2)
        for name, one in spans
    ]
    under = attempt.work[0] if attempt.work else whole
    if _width(whole, x) >= NUMBER_WIDTH and (not attempt.work or _width(under, x) >= NUMBERED_BAR_WIDTH):
        tone = "number" if attempt.work else "number open"
        bars.append(element("text", str(attempt.number), x=x(under.start) + 6, y=y + 21.5, class_=tone))
    text = f"attempt {attempt.number} on {attempt.tier}: {attempt.reason}, {span(whole.seconds)}"
    return element("g", element("title", text), *bars)


def _width(of: Span, x: Scale) -> float:
    return max(1.0, x(of.end) - x(of.start))


def _marks(facts: RunFacts, x: Scale, lanes: Mapping[str, int]) -> Iterator[Markup]:
    """All commits, notices and failures. Notices or failures that would overlap share a mark, with their number."""
    for commit in facts.commits:
        if commit.tier in lanes:
            title = element("title", f"step {count(commit.step)} committed at {clock(commit.at)}")
            d = f"M{x(commit.at):.1f},{lanes[commit.tier] + LANE - 10} v-9"
            yield element("path", title, d=d, class_="commit")
    notices = [(mark, f"{mark.what}: eviction notice at {clock(mark.at)}") for mark in facts.notices]
    failures = [(mark, f"lost {mark.what} at {clock(mark.at)}") for mark in facts.evictions]
    for kind, events, below in (("notice", notices, 17), ("eviction", failures, -1)):
        marked = sorted(
            (x(mark.at), float(lanes[mark.tier] + below), text) for mark, text in events if mark.tier in lanes
        )
        for at, y, number in apart([(at, y) for at, y, _ in marked], MARK_WIDTH):
            texts = [text for other, row, text in marked if row == y and at <= other < at + MARK_WIDTH][:number]
            shape = (
                f"M{at:.1f},{y - 5:g} l5,5 l-5,5 l-5,-5 z"
                if kind == "notice"
                else f"M{at - 4:.1f},{y - 4:g} l8,8 m0,-8 l-8,8"
            )
            yield element("path", element("title", "; ".join(texts)), d=shape, class_=kind)
            if number > 1:
                yield element("text", f"{number}×", x=at + 7, y=y + 3, class_="tick")


def _steps(facts: RunFacts, x: Scale, top: float, bottom: float) -> Markup:
    """The step over time, below the lanes. Each drop is work that must be done again."""
    highest = max(facts.total, facts.steps, 1)
    y = Scale(0, highest, bottom, top + 14)
    parts = [
        element("line", x1=x.start, x2=x.end, y1=y(highest), y2=y(highest), class_="grid"),
        element("text", f"step {count(highest)}", x=x.start, y=y(highest) - 5, class_="tick"),
    ]
    if facts.progress:
        parts.append(element("polyline", points=points(thinned(facts.progress), x, y), class_="curve step"))
    return join(*parts)


def thinned(curve: Sequence[tuple[Seconds, int]]) -> list[tuple[Seconds, int]]:
    """At most about `POINTS` points of the curve, with both ends of each drop: the curve is drawn to show them."""
    falls = [index for index in range(1, len(curve)) if curve[index][1] < curve[index - 1][1]]
    kept = {*range(0, len(curve), -(-len(curve) // POINTS) or 1), *falls, *(index - 1 for index in falls)}
    return [curve[index] for index in sorted({*kept, *([len(curve) - 1] if curve else [])})]


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
