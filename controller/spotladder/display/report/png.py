"""timeline.png: the timeline as a picture for slides and chats, with the lanes and marks of the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spotladder.core.model import CapacityType
from spotladder.display.figures import clock, count, percent, span
from spotladder.display.report.axes import apart, time_ticks
from spotladder.display.report.facts import Facts

COLOUR = {CapacityType.SPOT: "#0072b2", CapacityType.ON_DEMAND: "#e69f00", CapacityType.RESERVED: "#009e73"}
BAD, INK, SOFT, LANE = "#c44601", "#1d2129", "#5c6470", "#f3f4f5"


def draw_png(facts: Facts, path: Path) -> None:
    """Draw and save the picture. Uses matplotlib without a display and without its global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    tiers = [tier.name for tier in facts.spec.tiers]
    figure = Figure(figsize=(10, 1.9 + 0.5 * len(tiers)), dpi=140, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    lanes, steps = figure.subplots(2, 1, sharex=True, height_ratios=[0.5 * len(tiers), 0.9])
    _lanes(lanes, facts, tiers)
    highest = max(facts.total, facts.steps, 1)
    if facts.progress:
        steps.plot(*zip(*facts.progress, strict=True), color=SOFT, linewidth=1.3)
    steps.set_ylim(0, highest * 1.08)
    steps.set_yticks([highest], [_plain(count(highest))])
    steps.set_ylabel("step", color=SOFT)
    steps.set_xlabel("time since the start (h:mm:ss)", color=SOFT, fontsize=9)
    steps.set_xlim(0, facts.length or 1.0)
    ticks = time_ticks(facts.length, 8)
    steps.set_xticks(ticks, [clock(tick) for tick in ticks])
    for axes in (lanes, steps):
        axes.tick_params(length=0, colors=SOFT, labelsize=9)
        for side in axes.spines.values():
            side.set_visible(False)
    title = f"{facts.namespace}/{facts.job}: {span(facts.time.total)}, goodput {percent(facts.time.goodput)}"
    lanes.set_title(_plain(title), loc="left", fontsize=11, color=INK, fontweight="bold")
    figure.savefig(path, format="png", metadata={"Software": None})


def _lanes(axes: Any, facts: Facts, tiers: list[str]) -> None:
    row = {name: index for index, name in enumerate(tiers)}
    axes.set_yticks(range(len(tiers)), [_plain(name) for name in tiers], fontsize=10, color=INK)
    axes.set_ylim(len(tiers) - 0.45, -0.62)
    for index in row.values():
        axes.broken_barh([(0, facts.length)], (index - 0.34, 0.68), color=LANE, zorder=0)
    for name, spans in facts.dry.items():
        if name in row:
            axes.broken_barh(
                [(each.start, each.seconds) for each in spans],
                (row[name] - 0.34, 0.68),
                color=SOFT,
                alpha=0.25,
                zorder=1,
            )
    for attempt in facts.attempts:
        if attempt.tier not in row:
            continue
        colour, place = COLOUR[attempt.capacity_type], (row[attempt.tier] - 0.26, 0.52)
        axes.broken_barh(
            [(attempt.start, attempt.end - attempt.start)], place, color=colour, alpha=0.22, lw=0, zorder=2
        )
        axes.broken_barh(
            [(each.start, each.seconds) for each in attempt.all_ready], place, color=colour, alpha=0.4, lw=0
        )
        axes.broken_barh([(each.start, each.seconds) for each in attempt.work], place, color=colour, lw=0, zorder=3)
        if attempt.end - attempt.start >= 0.02 * facts.length:
            number = {"fontsize": 9, "fontweight": "bold", "color": "white" if attempt.work else INK, "zorder": 4}
            at = (attempt.work[0].start if attempt.work else attempt.start) + 0.006 * facts.length
            axes.text(at, row[attempt.tier], str(attempt.number), va="center", ha="left", **number)
    for marks, offset, style in (
        (facts.commits, 0.2, {"marker": "|", "color": INK, "s": 30, "linewidths": 1.2, "label": "commit"}),
        (facts.notices, 0.0, {"marker": "D", "color": "white", "edgecolors": BAD, "s": 26, "label": "eviction notice"}),
        (facts.evictions, -0.44, {"marker": "x", "color": BAD, "s": 34, "linewidths": 2, "label": "failure"}),
    ):
        shown = [(mark.at, row[mark.tier] + offset) for mark in marks if mark.tier in row]
        least = 0.0 if marks is facts.commits else 0.01 * facts.length
        kept = apart(shown, least)
        if kept:
            axes.scatter([at for at, _, _ in kept], [y for _, y, _ in kept], zorder=5, clip_on=False, **style)
        for at, y, same in kept:
            if same > 1 and least:
                axes.annotate(f"{same}×", (at, y), (6, -3), textcoords="offset points", fontsize=8, color=BAD, zorder=6)
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
