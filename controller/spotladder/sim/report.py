"""A comparison as one HTML file without external resources or scripts, in the style of the report of a run."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from spotladder.core.accounting import HOUR
from spotladder.core.model import CapacityType
from spotladder.display.figures import span
from spotladder.display.report.axes import Scale, ticks
from spotladder.display.report.markup import Markup, element, join, trusted
from spotladder.errors import not_written
from spotladder.sim.compare import MOST_DRAWN, Scenario, Summary, availability, frontier, lanes
from spotladder.sim.table import COLUMNS, JOB_COLUMNS, JOB_TITLE, failures, job_rows, on_demand_cost, rows, title
from spotladder.sim.world.run import Sample

WIDTH, LEFT, ROW = 900, 150, 34
"""Width and height of the charts, in pixels."""

COSTS = "A hollow dot is a run without success. The line is the work on demand without interruptions."
ENDS = "One dot for each successful run. The line connects the means of the policies on the Pareto front."
TIMELINE = "Blue is spot capacity, orange on-demand. Pale: the attempt waits or starts, and nothing trains."

JOBS = f"Below the name of a policy: one row for each of its jobs, job 0 first, {MOST_DRAWN} at most."

CURVES = "Upper chart: finished work in hours; a drop is work that was lost. Lower chart: the cost in USD."

STROKES = ("var(--spot)", "var(--on-demand)", "var(--reserved)", "var(--ink)", "var(--soft)")
"""Colours of the curves of the policies, used in turn; the name of the policy is at the end of each curve."""

CURVE = 150
"""Height of a chart of curves, in pixels."""

BINS = 96
"""Columns of the heat map."""

MOST_SEEDS = 100
"""Runs that the heat map counts."""

COLOURS = {
    CapacityType.SPOT: "var(--spot)",
    CapacityType.ON_DEMAND: "var(--on-demand)",
    CapacityType.RESERVED: "var(--reserved)",
}

RUN_COLUMNS = (
    "policy",
    "seed",
    "ended with",
    "cost",
    "ends after",
    "attempts",
    "evictions",
    "recomputed",
    "node-hours",
)


def write(file: Path, summaries: Sequence[Summary], scenario: Scenario) -> None:
    """Write the page. Raises EnvironmentFailure if the file cannot be written."""
    try:
        file.write_text(page(summaries, scenario), encoding="utf-8")
    except OSError as error:
        raise not_written("--report", file, error) from None


def page(summaries: Sequence[Summary], scenario: Scenario) -> str:
    """The whole page."""
    style = trusted(files("spotladder.display.report").joinpath("style.css").read_text(encoding="utf-8"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", "Simulated policies – spotladder report"),
        element("style", style),
    )
    least, first = on_demand_cost(scenario), _seed(0, scenario.jobs)
    body = element(
        "main",
        element("header", element("h1", "Simulated policies"), element("p", title(scenario), class_="verdict")),
        element("section", element("h2", "Policies"), _table(COLUMNS, rows(summaries, scenario))),
        *[element("p", sentence, class_="note") for sentence in failures(summaries)],
        *[element("p", f"assumed: {sentence}", class_="note") for sentence in scenario.assumptions],
        *_jobs(summaries, scenario),
        element("section", element("h2", "Cost of each run"), _note(COSTS), _costs(summaries, least, scenario.jobs)),
        element("section", element("h2", "Cost and finish time"), _note(ENDS), _ends(summaries)),
        element("section", element("h2", "The run with seed 0"), *_timeline(summaries, scenario)),
        element("section", element("h2", f"Work and cost over time, seed {first}"), _note(CURVES), *_curves(summaries)),
        *_availability(scenario, len(summaries[0].outcomes) // scenario.jobs),
        element("section", element("h2", "Runs"), _runs(summaries, scenario.jobs)),
    )
    return f"<!doctype html>\n{element('html', head, element('body', body), lang='en')}\n"


def _jobs(summaries: Sequence[Summary], scenario: Scenario) -> list[Markup]:
    """The results of each job, if there are several."""
    lines = job_rows(summaries, scenario)
    return [element("section", element("h2", JOB_TITLE), _table(JOB_COLUMNS, lines))] if lines else []


def _table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> Markup:
    head = element("tr", *[element("th", name, class_="n" if index else None) for index, name in enumerate(columns)])
    body = [
        element("tr", *[element("td", text, class_="n" if index else None) for index, text in enumerate(line)])
        for line in lines
    ]
    return element("div", element("table", element("thead", head), element("tbody", *body)), class_="scroll")


def _costs(summaries: Sequence[Summary], on_demand: float, jobs: int) -> Markup:
    """One lane for each policy with a dot for each run, hollow without success. A line marks on-demand."""
    highest = max([on_demand, *(one.cost for summary in summaries for one in summary.outcomes)]) or 1.0
    x = Scale(0, 1.05 * highest, LEFT, WIDTH - 10)
    parts = [
        element("line", x1=x(on_demand), x2=x(on_demand), y1=0, y2=ROW * len(summaries), stroke="var(--on-demand)"),
    ]
    for index, summary in enumerate(summaries):
        y = ROW * index + ROW / 2
        parts.append(_label(summary.policy, y))
        for run, one in enumerate(summary.outcomes):
            label = element("title", f"seed {_seed(run, jobs)}: ${one.cost:.2f}, {one.reason}")
            fill = "var(--spot)" if one.succeeded else "none"
            parts.append(element("circle", label, cx=x(one.cost), cy=y, r=4, fill=fill, stroke="var(--spot)"))
    return _drawing(parts, x, [(value, f"${value:g}") for value in ticks(1.05 * highest)], ROW * len(summaries))


def _ends(summaries: Sequence[Summary]) -> Markup:
    """Cost over finish time: a dot for each successful run, and the Pareto front of the means."""
    runs = [
        (index, summary.policy, one)
        for index, summary in enumerate(summaries)
        for one in summary.outcomes
        if one.succeeded
    ]
    x = Scale(0, 1.05 * max((one.finished / HOUR for _index, _name, one in runs), default=1.0), LEFT, WIDTH - 10)
    highest = 1.05 * (max((one.cost for _index, _name, one in runs), default=0.0) or 1.0)
    y = Scale(0, highest, 2 * CURVE, 6)
    parts: list[Markup] = []
    for value in ticks(highest, 4):
        parts.append(_label(f"${value:g}", y(value)))
        parts.append(element("line", x1=LEFT, x2=WIDTH - 10, y1=y(value), y2=y(value), stroke="var(--line)"))
    for index, name, one in runs:
        label = element("title", f"{name}: ${one.cost:.2f}, {span(one.finished)}")
        colour = STROKES[index % len(STROKES)]
        parts.append(element("circle", label, cx=x(one.finished / HOUR), cy=y(one.cost), r=4, fill=colour, opacity=0.6))
    means = [(summary.policy, x(summary.hours or 0.0), y(summary.cost)) for summary in frontier(summaries)]
    path = " ".join(f"{'L' if place else 'M'}{at:.1f},{up:.1f}" for place, (_name, at, up) in enumerate(means))
    if path:
        parts.append(element("path", d=path, fill="none", stroke="var(--ink)"))
    for name, at, up in means:
        parts.append(element("text", name, x=at + 6, y=up - 6, fill="var(--ink)"))
    return _drawing(parts, x, [(value, f"{value:g} h") for value in ticks(x.high)], 2 * CURVE)


def _timeline(summaries: Sequence[Summary], scenario: Scenario) -> list[Markup]:
    """One lane for each job of each policy: its tiers over time, pale while the program does not train."""
    kinds, drawn = {tier.name: tier.capacity_type for tier in scenario.spec.tiers}, lanes(summaries, scenario.jobs)
    longest = max(one.began + one.finished for _name, one in drawn) / HOUR or 1.0
    x = Scale(0, longest, LEFT, WIDTH - 10)
    parts: list[Markup] = []
    for index, (name, one) in enumerate(drawn):
        parts.append(_label(name, ROW * index + ROW / 2))
        for part in one.segments:
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
                    fill=COLOURS[kinds[part.tier]],
                    opacity=1.0 if part.trains else 0.25,
                )
            )
    drawing = _drawing(parts, x, [(value, f"{value:g} h") for value in ticks(longest)], ROW * len(drawn))
    return [_note(TIMELINE), *([_note(JOBS)] if scenario.jobs > 1 else []), drawing]


def _curves(summaries: Sequence[Summary]) -> list[Markup]:
    """The finished work and the cost of the first run of each policy, as two charts over one axis of time."""
    runs = [(summary.policy, summary.outcomes[0]) for summary in summaries]
    longest = max(run.finished for _name, run in runs) / HOUR or 1.0
    x = Scale(0, 1.12 * longest, LEFT, WIDTH - 10)
    charts = []
    for unit, of in (("{:g} h", _hours_done), ("${:g}", _paid)):
        curves = [(name, [(one.at / HOUR, of(one)) for one in run.samples]) for name, run in runs]
        highest = max((value for _name, curve in curves for _at, value in curve), default=0.0) or 1.0
        y = Scale(0, 1.1 * highest, CURVE, 6)
        parts: list[Markup] = []
        for value in ticks(1.1 * highest, 4):
            parts.append(_label(unit.format(value), y(value)))
            parts.append(element("line", x1=LEFT, x2=WIDTH - 10, y1=y(value), y2=y(value), stroke="var(--line)"))
        for index, (name, curve) in enumerate(curves):
            colour = STROKES[index % len(STROKES)]
            path = " ".join(
                f"{'L' if place else 'M'}{x(at):.1f},{y(value):.1f}" for place, (at, value) in enumerate(curve)
            )
            parts.append(element("path", element("title", name), d=path, fill="none", stroke=colour, stroke_width=2))
            at, value = curve[-1]
            parts.append(element("text", name, x=x(at) + 4, y=y(value) + 4 + 12 * (index % 2), fill=colour))
        marks = [(value, f"{value:g} h") for value in ticks(1.12 * longest)]
        charts.append(_drawing(parts, x, marks, CURVE))
    return charts


def _hours_done(sample: Sample) -> float:
    return sample.work / HOUR


def _paid(sample: Sample) -> float:
    return sample.usd


def _availability(scenario: Scenario, seeds: int) -> list[Markup]:
    """A heat map with one lane for each zone that has a trace: the darker, the more runs had capacity there then."""
    shares = availability(scenario, min(seeds, MOST_SEEDS), BINS)
    if not shares:
        return []
    hours = scenario.duration / HOUR
    x = Scale(0, hours, LEFT, WIDTH - 10)
    parts: list[Markup] = []
    for index, (zone, lane) in enumerate(shares.items()):
        parts.append(_label(zone, ROW * index + ROW / 2))
        for bin_, share in enumerate(lane.tolist()):
            since, until = bin_ * hours / BINS, (bin_ + 1) * hours / BINS
            label = f"{zone}, {since:.1f} h: {100 * share:.0f} % of the runs have capacity"
            area = {"x": x(since), "y": ROW * index + 4, "width": x(until) - x(since), "height": ROW - 8}
            shade = {"fill": "var(--spot)", "opacity": round(share, 3), "shape_rendering": "crispEdges"}
            parts.append(element("rect", element("title", label), **area, **shade))
    drawing = _drawing(parts, x, [(value, f"{value:g} h") for value in ticks(hours)], ROW * len(shares))
    note = f"A darker cell means that more of {min(seeds, MOST_SEEDS)} runs have capacity for all workers at that time."
    return [element("section", element("h2", "Availability"), _note(note), drawing)]


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


def _seed(index: int, jobs: int) -> str:
    """The seed of a run with this index, and its job if there are several."""
    return str(index) if jobs == 1 else f"{index // jobs}, job {index % jobs}"


def _runs(summaries: Sequence[Summary], jobs: int) -> Markup:
    lines = [
        (
            summary.policy,
            _seed(index, jobs),
            str(one.reason),
            f"${one.cost:.2f}",
            span(one.finished),
            str(one.attempts),
            str(one.evictions),
            span(one.recomputed),
            ", ".join(f"{tier} {hours:.1f}" for tier, hours in one.node_hours.items() if hours),
        )
        for summary in summaries
        for index, one in enumerate(summary.outcomes)
    ]
    return element("details", element("summary", f"{len(lines)} runs"), _table(RUN_COLUMNS, lines))
