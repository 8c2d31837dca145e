"""timeline.png: the timeline as a picture for slides and chats, with the lanes and marks of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spotladder.core.model import CapacityType
from spotladder.display.figures import clock, count, percent, span
from spotladder.display.report.axes import time_ticks
from spotladder.display.report.facts import Facts
from spotladder.display.report.timeline_layout import BarKind, MarkKind, TimelineLayout, timeline_layout

COLOUR = {CapacityType.SPOT: "#0072b2", CapacityType.ON_DEMAND: "#e69f00", CapacityType.RESERVED: "#009e73"}
BAD, INK, SOFT, LANE = "#c44601", "#1d2129", "#5c6470", "#f3f4f5"
ALPHA = {BarKind.WAITING: 0.22, BarKind.READY: 0.4, BarKind.WORK: 1.0}

UNITS = 1000
"""Length of the axis of time, in units of the layout: the marks are 1 % of it wide."""

MARKS: dict[MarkKind, tuple[float, dict[str, Any]]] = {
    MarkKind.COMMIT: (0.2, {"marker": "|", "color": INK, "s": 30, "linewidths": 1.2}),
    MarkKind.NOTICE: (0.0, {"marker": "D", "color": "white", "edgecolors": BAD, "s": 26}),
    MarkKind.FAILURE: (-0.44, {"marker": "x", "color": BAD, "s": 34, "linewidths": 2}),
}
"""The distance of each mark from the middle of its lane, in lanes downwards, and its style."""


def draw_png(facts: Facts, path: Path) -> None:
    """Draw and save the picture. Uses matplotlib without a display and without its global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout = timeline_layout(facts, UNITS)
    rows = 0.5 * len(layout.tiers)
    figure = Figure(figsize=(10, 1.9 + rows), dpi=140, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    lanes, steps = figure.subplots(2, 1, sharex=True, height_ratios=[rows, 0.9])
    _lanes(lanes, layout)
    highest = layout.highest_step
    if layout.progress:
        steps.plot(*zip(*layout.progress, strict=True), color=SOFT, linewidth=1.3)
    steps.set_ylim(0, highest * 1.08)
    steps.set_yticks([highest], [_plain(count(highest))])
    steps.set_ylabel("step", color=SOFT)
    steps.set_xlabel("time since the start (h:mm:ss)", color=SOFT, fontsize=9)
    steps.set_xlim(0, layout.length)
    ticks = time_ticks(facts.length, 8)
    steps.set_xticks(ticks, [clock(tick) for tick in ticks])
    for axes in (lanes, steps):
        axes.tick_params(length=0, colors=SOFT, labelsize=9)
        for side in axes.spines.values():
            side.set_visible(False)
    title = f"{facts.namespace}/{facts.job}: {span(facts.time.total)}, goodput {percent(facts.time.goodput)}"
    lanes.set_title(_plain(title), loc="left", fontsize=11, color=INK, fontweight="bold")
    figure.savefig(path, format="png", metadata={"Software": None})


def _lanes(axes: Any, layout: TimelineLayout) -> None:
    axes.set_yticks(range(len(layout.tiers)), [_plain(name) for name in layout.tiers], fontsize=10, color=INK)
    axes.set_ylim(len(layout.tiers) - 0.45, -0.62)
    for index in range(len(layout.tiers)):
        axes.broken_barh([(0, layout.length)], (index - 0.34, 0.68), color=LANE, zorder=0)
    for dry in layout.dry:
        place = (dry.lane - 0.34, 0.68)
        axes.broken_barh([(dry.span.start, dry.span.seconds)], place, color=SOFT, alpha=0.25, zorder=1)
    for change in layout.changes:
        axes.plot([change.at] * 2, [change.before, change.after], color=SOFT, linewidth=1.0, zorder=1)
    for attempt in layout.attempts:
        colour, place = COLOUR[attempt.capacity_type], (attempt.lane - 0.26, 0.52)
        for bar in attempt.bars:
            where, alpha = [(bar.span.start, bar.span.seconds)], ALPHA[bar.kind]
            axes.broken_barh(where, place, color=colour, alpha=alpha, lw=0, zorder=2)
        if attempt.number_at is not None:
            number = {"fontsize": 9, "fontweight": "bold", "color": "white" if attempt.works else INK, "zorder": 4}
            after = attempt.number_at + 0.006 * layout.length
            axes.text(after, attempt.lane, str(attempt.number), va="center", ha="left", **number)
    for kind, (offset, style) in MARKS.items():
        marks = [mark for mark in layout.marks if mark.kind is kind]
        if marks:
            at, y = [mark.at for mark in marks], [mark.lane + offset for mark in marks]
            axes.scatter(at, y, zorder=5, clip_on=False, label=str(kind), **style)
        for mark in marks:
            if mark.number > 1:
                place, text = (mark.at, mark.lane + offset), f"{mark.number}×"
                axes.annotate(text, place, (6, -3), textcoords="offset points", fontsize=8, color=BAD, zorder=6)
    axes.scatter([], [], marker="$1$", color=INK, s=36, label="number of the attempt")
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(
            handles,
            labels,
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=4,
            frameon=False,
            fontsize=9,
            labelcolor=SOFT,
        )


def _plain(text: str) -> str:
    """Escape text for matplotlib: a `$` would start a formula."""
    return text.replace("$", r"\$").replace("\u202f", " ")
