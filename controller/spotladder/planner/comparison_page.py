"""A comparison of policies as one HTML file without external resources or scripts, in the style of the report of a
run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from spotladder.core.accounting import HOUR
from spotladder.display.figures import span
from spotladder.display.report.axes import Scale, ticks
from spotladder.display.report.markup import Markup, element, join, trusted
from spotladder.errors import not_written
from spotladder.planner.comparison import COLUMNS, Compared, failures, rows

WIDTH, LEFT, ROW = 900, 150, 34
"""Width and height of the charts, in pixels."""

CHART = 300
"""Height of the chart of costs, in pixels."""

ENDS = "One dot for each run, hollow without success."
TIMELINE = "One colour for each tier. Pale: the attempt waits or starts, and nothing trains."

STROKES = ("var(--spot)", "var(--on-demand)", "var(--reserved)", "var(--ink)", "var(--soft)")
"""Colours of policies and of tiers, used in turn."""

RUN_COLUMNS = ("policy", "seed", "ended with", "cost", "ends after", "attempts", "losses", "recomputed", "node-hours")


def write(file: Path, title: str, found: Sequence[Compared], assumptions: Sequence[str]) -> None:
    """Write the page. Raises EnvironmentFailure if the file cannot be written."""
    try:
        file.write_text(page(title, found, assumptions), encoding="utf-8")
    except OSError as error:
        raise not_written("--report", file, error) from None


def page(title: str, found: Sequence[Compared], assumptions: Sequence[str]) -> str:
    """The whole page."""
    style = trusted(files("spotladder.display.report").joinpath("style.css").read_text(encoding="utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "Simulated policies – spotladder report"),
        element("style", style),
    )
    body = element(
        "main",
        element("header", element("h1", "Simulated policies"), element("p", title, class_="verdict")),
        element("section", element("h2", "Policies"), _table(COLUMNS, rows(found))),
        *[element("p", sentence, class_="note") for sentence in failures(found)],
        *[element("p", f"assumed: {sentence}", class_="note") for sentence in assumptions],
        element("section", element("h2", "Cost and finish time"), _note(ENDS), _ends(found)),
        element("section", element("h2", "The run with seed 0"), _note(TIMELINE), _timeline(found)),
        element("section", element("h2", "Runs"), _runs(found)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> Markup:
    head = element("tr", *[element("th", name, class_="n" if index else None) for index, name in enumerate(columns)])
    body = [
        element("tr", *[element("td", text, class_="n" if index else None) for index, text in enumerate(line)])
        for line in lines
    ]
    return element("div", element("table", element("thead", head), element("tbody", *body)), class_="scroll")


def _ends(found: Sequence[Compared]) -> Markup:
    """Cost over finish time: a dot for each run, in the colour of its policy."""
    runs = [(index, compared.policy, one) for index, compared in enumerate(found) for one in compared.outcomes]
    x = Scale(0, 1.05 * max(one.finished / HOUR for _index, _name, one in runs), LEFT, WIDTH - 10)
    highest = 1.05 * (max(one.cost for _index, _name, one in runs) or 1.0)
    y = Scale(0, highest, CHART, 6)
    parts: list[Markup] = []
    for value in ticks(highest, 4):
        parts.append(_label(f"${value:g}", y(value)))
        parts.append(element("line", x1=LEFT, x2=WIDTH - 10, y1=y(value), y2=y(value), stroke="var(--line)"))
    for index, name, one in runs:
        label = element("title", f"{name}: ${one.cost:.2f}, {span(one.finished)}, {one.reason}")
        colour = _colour(index)
        fill = colour if one.succeeded else "none"
        parts.append(element("circle", label, cx=x(one.finished / HOUR), cy=y(one.cost), r=4, fill=fill, stroke=colour))
    legend = _legend([compared.policy for compared in found])
    return join(legend, _drawing(parts, x, [(value, f"{value:g} h") for value in ticks(x.high)], CHART))


def _timeline(found: Sequence[Compared]) -> Markup:
    """One lane for each policy: its tiers over time, pale while the program does not train."""
    tiers = list(found[0].outcomes[0].node_hours)
    longest = max(compared.outcomes[0].finished for compared in found) / HOUR or 1.0
    x = Scale(0, longest, LEFT, WIDTH - 10)
    parts: list[Markup] = []
    for index, compared in enumerate(found):
        parts.append(_label(compared.policy, ROW * index + ROW / 2))
        for part in compared.outcomes[0].segments:
            since, until = part.since / HOUR, part.until / HOUR
            doing = "" if part.trains else ", does not train"
            parts.append(
                element(
                    "rect",
                    element("title", f"{part.tier}: {span(part.since)} – {span(part.until)}{doing}"),
                    x=x(since),
                    y=ROW * index + 6,
                    width=max(0.5, x(until) - x(since)),
                    height=ROW - 12,
                    fill=_colour(tiers.index(part.tier)),
                    opacity=1.0 if part.trains else 0.25,
                )
            )
    drawing = _drawing(parts, x, [(value, f"{value:g} h") for value in ticks(longest)], ROW * len(found))
    return join(_legend(tiers), drawing)


def _colour(index: int) -> str:
    return STROKES[index % len(STROKES)]


def _legend(names: Sequence[str]) -> Markup:
    keys = [
        element("li", element("span", "■ ", style=f"color:{_colour(index)}"), name) for index, name in enumerate(names)
    ]
    return element("ul", *keys, class_="key")


def _note(text: str) -> Markup:
    return element("p", text, class_="note")


def _drawing(parts: Sequence[Markup], x: Scale, marks: Sequence[tuple[float, str]], bottom: float) -> Markup:
    axis = [
        element("text", text, x=x(value), y=bottom + 18, text_anchor="middle", fill="var(--soft)")
        for value, text in marks
    ]
    line = element("line", x1=LEFT, x2=WIDTH - 10, y1=bottom, y2=bottom, stroke="var(--line)")
    box = f"0 0 {WIDTH} {bottom + 26}"
    return element("svg", line, join(*parts), join(*axis), viewBox=box, class_="chart", role="img")


def _label(text: str, y: float) -> Markup:
    return element("text", text, x=LEFT - 12, y=y + 4, text_anchor="end", fill="var(--ink)")


def _runs(found: Sequence[Compared]) -> Markup:
    lines = [
        (
            compared.policy,
            str(seed),
            str(one.reason),
            f"${one.cost:.2f}",
            span(one.finished),
            str(one.attempts),
            str(one.evictions),
            span(one.recomputed),
            ", ".join(f"{tier} {hours:.1f}" for tier, hours in one.node_hours.items() if hours),
        )
        for compared in found
        for seed, one in enumerate(compared.outcomes)
    ]
    return element("details", element("summary", f"{len(lines)} runs"), _table(RUN_COLUMNS, lines))
