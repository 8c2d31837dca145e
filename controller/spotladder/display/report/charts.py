"""The report's charts as inline SVG. Colours come from the page's style sheet, so one drawing serves dark and light
mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from spotladder.display.figures import clock, count, measure, money, span
from spotladder.display.report.attempts import Span
from spotladder.display.report.axes import Scale, decades, ticks, time_ticks
from spotladder.display.report.facts import Facts
from spotladder.display.report.markup import Markup, element, join
from spotladder.display.report.timeline_layout import (
    POINTS,
    AttemptBars,
    BarKind,
    LaneMark,
    MarkKind,
    TimelineLayout,
    timeline_layout,
)

T = TypeVar("T")

LANE = 44
MARGIN = 8

BAR_CLASSES = {BarKind.WAITING: "waiting", BarKind.READY: "ready", BarKind.WORK: "work"}
"""The class of each bar in the page's style sheet."""


def timeline(facts: Facts, width: int) -> Markup:
    """One lane per tier: attempts, the times with a ready gang and with training steps, evictions and commits."""
    left = 92 if width >= 600 else 8
    label_above = width < 600
    lane = LANE + (16 if label_above else 0)
    top = 26
    layout = timeline_layout(facts, width - MARGIN - left)
    bottom = top + lane * len(layout.tiers)
    height = bottom + 164
    x = Scale(0, layout.length, left, width - MARGIN)
    lanes = [top + lane * index + (16 if label_above else 0) for index in range(len(layout.tiers))]
    parts: list[Markup] = []
    for index, (name, y) in enumerate(zip(layout.tiers, lanes, strict=True)):
        parts.append(element("rect", x=left, y=y, width=width - MARGIN - left, height=LANE - 10, class_="lane", rx=3))
        parts.append(
            element("text", name, x=left, y=y - 5, class_="label")
            if label_above
            else element("text", _short(name, 12), x=left - 10, y=y + 21, class_="label end")
        )
        parts.extend(
            element(
                "rect",
                element("title", dry.text),
                x=x(dry.span.start),
                y=y,
                width=max(1.0, x(dry.span.end) - x(dry.span.start)),
                height=LANE - 10,
                class_="dry",
            )
            for dry in layout.dry
            if dry.lane == index
        )
    for change in layout.changes:
        at, before, after = x(change.at), lanes[change.before] + 17, lanes[change.after] + 17
        parts.append(element("polyline", points=f"{at:.1f},{before} {at:.1f},{after}", class_="fall"))
    parts.extend(_attempt(attempt, x, lanes[attempt.lane]) for attempt in layout.attempts)
    parts.extend(_mark(mark, x(mark.at), lanes[mark.lane]) for mark in layout.marks)
    parts.append(_steps(layout, x, bottom + 14, height - 38))
    parts.append(_time_axis(facts, x, top - 6, height - 38, width))
    return _svg(width, height, "Timeline of the run by tier, with evictions and commits", parts)


def signs(facts: Facts) -> list[tuple[Markup, str]]:
    """The legend of the timeline: symbols in a square of 12 units, with their meanings."""

    def box(kind: str) -> Markup:
        return element("rect", x=0, y=1, width=12, height=11, rx=2, class_=kind)

    number = join(box(f"{BAR_CLASSES[BarKind.WORK]} spot"), element("text", "1", x=3, y=10.5, class_="number"))
    commit = element("path", d="M6,12 v-10", class_="commit")
    eviction = element("path", d="M2,2 l8,8 m0,-8 l-8,8", class_="eviction")
    notice = element("path", d="M6,1 l5,5 l-5,5 l-5,-5 z", class_="notice")
    return [
        (number, "number of the attempt"),
        *((box(f"{BAR_CLASSES[kind]} spot"), str(kind)) for kind in reversed(BarKind)),
        (commit, str(MarkKind.COMMIT)),
        *([(eviction, str(MarkKind.FAILURE))] if facts.evictions else []),
        *([(notice, str(MarkKind.NOTICE))] if facts.notices else []),
        *([(element("rect", x=0, y=1, width=12, height=11, class_="dry"), "no capacity")] if facts.dry else []),
    ]


def loss(facts: Facts, width: int) -> Markup | None:
    """The loss over the steps, across attempts. None if the program reports no loss."""
    curves = {number: _thin(curve) for number, curve in facts.losses.items()}
    values = [value for curve in curves.values() for _, value in curve]
    if not values:
        return None
    height, left, top = 254, 52, 24
    low, high = min(values), max(values)
    log = low > 0 and high / low > 20
    low, high = (low, high) if log else (min(0.0, low), high)
    high = high if high > low else low + 1.0
    x = Scale(0, max((step for curve in curves.values() for step, _ in curve), default=1) or 1, left, width - MARGIN)
    y = Scale(low, high, height - 40, top, log)
    kinds = {attempt.number: str(attempt.capacity_type) for attempt in facts.attempts}
    parts = [
        join(
            element("line", x1=left, x2=width - MARGIN, y1=y(tick), y2=y(tick), class_="grid"),
            element("text", measure(tick), x=left - 8, y=y(tick) + 4, class_="tick end"),
        )
        for tick in (decades(low, high) if log else ticks(high, 4, low))
    ]
    parts += [
        element("text", count(round(tick)), x=x(tick), y=height - 22, class_="tick middle")
        for tick in ticks(x.high, 5 if width >= 600 else 3)
    ]
    parts.append(element("text", "step", x=(x.start + x.end) / 2, y=height - 5, class_="tick middle"))
    parts.append(element("text", "loss (log)" if log else "loss", x=4, y=top - 12, class_="tick"))
    earlier: list[tuple[int, float]] = []
    for number, curve in curves.items():
        kind = kinds.get(number, "spot")
        title = element("title", f"attempt {number}")
        earlier = [point for point in earlier if point[0] <= curve[0][0]]
        drawn = [*earlier[-1:], *curve]  # from the newest loss that this attempt continues
        if len(drawn) > 1:
            parts.append(element("polyline", title, points=_points(drawn, x, y), class_=f"curve {kind}"))
        earlier += curve
        step, value = curve[0]
        parts.append(element("circle", cx=x(step), cy=y(value), r=3.5, class_=f"start {kind}"))
    return _svg(width, height, "Loss over the steps, across attempts", parts)


def cost(facts: Facts, width: int) -> Markup | None:
    """Cost over time, and the cost of the same nodes on demand. None without prices."""
    if facts.on_demand <= 0 or len(facts.bill) < 2:
        return None
    height, left, top = 226, 64, 24
    x = Scale(0, facts.length or 1.0, left, width - MARGIN)
    y = Scale(0, max(facts.on_demand, facts.spent), height - 40, top)
    parts = [
        join(
            element("line", x1=left, x2=width - MARGIN, y1=y(tick), y2=y(tick), class_="grid"),
            element("text", money(tick, y.high), x=left - 8, y=y(tick) + 4, class_="tick end"),
        )
        for tick in ticks(y.high, 4)
    ]
    bill = _thin(facts.bill)
    on_demand = [(at, amount) for at, _, amount in bill]
    spent = [(at, amount) for at, amount, _ in bill]
    area = f"{_points(spent, x, y)} {x(spent[-1][0]):.1f},{y(0):.1f} {x(spent[0][0]):.1f},{y(0):.1f}"
    parts.append(element("polygon", points=area, class_="paid-area"))
    parts.append(element("polyline", points=_points(on_demand, x, y), class_="curve yardstick"))
    parts.append(element("polyline", points=_points(spent, x, y), class_="curve paid"))
    parts.append(_time_axis(facts, x, None, height - 40, width))
    parts.append(element("text", "USD", x=4, y=top - 12, class_="tick"))
    return _svg(width, height, "Cost over time: paid, and the same nodes on demand", parts)


def _attempt(attempt: AttemptBars, x: Scale, y: float) -> Markup:
    kind = str(attempt.capacity_type)
    bars = [_bar(x, bar.span, y + 4, f"{BAR_CLASSES[bar.kind]} {kind}") for bar in attempt.bars]
    if attempt.number_at is not None:
        tone = "number" if attempt.works else "number open"
        bars.append(element("text", str(attempt.number), x=x(attempt.number_at) + 6, y=y + 21.5, class_=tone))
    return element("g", element("title", attempt.text), *bars)


def _bar(x: Scale, of: Span, y: float, kind: str) -> Markup:
    width = max(1.0, x(of.end) - x(of.start))
    return element("rect", x=x(of.start), y=y, width=width, height=LANE - 18, class_=kind, rx=2)


def _mark(mark: LaneMark, x: float, y: float) -> Markup:
    """A mark with its number if it stands for several events. `y` is the top of its lane."""
    title = element("title", mark.text)
    match mark.kind:
        case MarkKind.COMMIT:
            return element("path", title, d=f"M{x:.1f},{y + LANE - 10} v-9", class_="commit")
        case MarkKind.NOTICE:
            y += 17
            drawn = element("path", title, d=f"M{x:.1f},{y - 5} l5,5 l-5,5 l-5,-5 z", class_="notice")
        case MarkKind.FAILURE:
            y -= 1
            drawn = element("path", title, d=f"M{x - 4:.1f},{y - 4} l8,8 m0,-8 l-8,8", class_="eviction")
    return (
        drawn if mark.number == 1 else join(drawn, element("text", f"{mark.number}×", x=x + 7, y=y + 3, class_="tick"))
    )


def _steps(layout: TimelineLayout, x: Scale, top: float, bottom: float) -> Markup:
    """The step over time, below the lanes. Each drop is work that must be done again."""
    highest = layout.highest_step
    y = Scale(0, highest, bottom, top + 14)
    parts = [
        element("line", x1=x.start, x2=x.end, y1=y(highest), y2=y(highest), class_="grid"),
        element("text", f"step {count(highest)}", x=x.start, y=y(highest) - 5, class_="tick"),
    ]
    if layout.progress:
        parts.append(element("polyline", points=_points(layout.progress, x, y), class_="curve step"))
    return join(*parts)


def _time_axis(facts: Facts, x: Scale, top: float | None, y: float, width: float) -> Markup:
    parts = [element("line", x1=x.start, x2=x.end, y1=y, y2=y, class_="axis")]
    for tick in time_ticks(facts.length, 8 if width >= 600 else 4):
        anchor = "tick middle" if x(tick) < x.end - 18 else "tick end"
        parts.append(element("text", clock(tick), x=max(x(tick), x.start + 16), y=y + 17, class_=anchor))
        parts.append(element("line", x1=x(tick), x2=x(tick), y1=y, y2=y + 4, class_="axis"))
    middle = (x.start + x.end) / 2
    parts.append(element("text", "time since the start (h:mm:ss)", x=middle, y=y + 34, class_="tick middle"))
    for at, length in facts.breaks:
        title = element("title", f"interrupted here; resumed {span(length)} later")
        parts.append(element("line", title, x1=x(at), x2=x(at), y1=top or 0, y2=y, class_="break"))
    return join(*parts)


def _points(curve: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    return " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in curve)


def _thin(curve: Sequence[T]) -> list[T]:
    stride = -(-len(curve) // POINTS)
    return [*curve[::stride], curve[-1]] if stride > 1 else list(curve)


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _svg(width: float, height: float, label: str, parts: list[Markup]) -> Markup:
    return element("svg", *parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=label, class_="chart")
