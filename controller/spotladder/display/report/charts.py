"""The report's charts as inline SVG. Colours come from the page's style sheet, so one drawing serves dark and light
mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from spotladder.display.figures import clock, count, measure, money, span
from spotladder.display.report.axes import Scale, decades, ticks, time_ticks
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.markup import Markup, element, join

T = TypeVar("T")

MARGIN = 8
POINTS = 500
"""Maximum number of points of a curve; more are not visible."""


def loss(facts: RunFacts, width: int) -> Markup | None:
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
            parts.append(element("polyline", title, points=points(drawn, x, y), class_=f"curve {kind}"))
        earlier += curve
        step, value = curve[0]
        parts.append(element("circle", cx=x(step), cy=y(value), r=3.5, class_=f"start {kind}"))
    return svg(width, height, "Loss over the steps, across attempts", parts)


def cost(facts: RunFacts, width: int) -> Markup | None:
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
    area = f"{points(spent, x, y)} {x(spent[-1][0]):.1f},{y(0):.1f} {x(spent[0][0]):.1f},{y(0):.1f}"
    parts.append(element("polygon", points=area, class_="paid-area"))
    parts.append(element("polyline", points=points(on_demand, x, y), class_="curve yardstick"))
    parts.append(element("polyline", points=points(spent, x, y), class_="curve paid"))
    parts.append(time_axis(facts, x, None, height - 40, width))
    parts.append(element("text", "USD", x=4, y=top - 12, class_="tick"))
    return svg(width, height, "Cost over time: paid, and the same nodes on demand", parts)


def time_axis(facts: RunFacts, x: Scale, top: float | None, y: float, width: float) -> Markup:
    """The axis of time at `y`, with a line from `top` for each interruption of the run."""
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


def points(curve: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """The curve as the points of a polyline."""
    return " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in curve)


def _thin(curve: Sequence[T]) -> list[T]:
    stride = -(-len(curve) // POINTS)
    return [*curve[::stride], curve[-1]] if stride > 1 else list(curve)


def svg(width: float, height: float, label: str, parts: list[Markup]) -> Markup:
    """A drawing of this size in pixels."""
    return element("svg", *parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=label, class_="chart")
