"""Pictures of a comparison: the distribution of costs, cost beside finish time, and one run of each policy over time:
its work, its cost and its tiers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spotladder.core.accounting import HOUR
from spotladder.errors import EnvironmentFailure, not_written
from spotladder.sim.compare import Summary, frontier, lanes
from spotladder.sim.spells import survival
from spotladder.sim.synthetic import like, tick_of
from spotladder.sim.trace import Trace
from spotladder.sim.world.run import SimulationOutcome

LONGEST = 72
"""Ages of survival curves, in ticks."""

COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f")


def draw(file: Path, summaries: Sequence[Summary], jobs: int = 1) -> None:
    """Draw a comparison, of runs with so many jobs each, into a .png or .svg file. Raises EnvironmentFailure without
    matplotlib, or if the file cannot be written."""
    drawn = lanes(summaries, jobs)
    figure = new_figure((10, 8.4 + 0.5 * len(drawn)), "--plot")
    grid = figure.add_gridspec(3, 2, height_ratios=(4, 3.6, 0.8 + 0.6 * len(drawn)))
    costs = figure.add_subplot(grid[0, 0])
    _costs(costs, summaries)
    _ends(figure.add_subplot(grid[0, 1]), summaries)
    _work(figure.add_subplot(grid[1, 0]), summaries)
    _spent(figure.add_subplot(grid[1, 1]), summaries)
    _timeline(figure.add_subplot(grid[2, :]), drawn, jobs)
    figure.legend(*costs.get_legend_handles_labels(), loc="outside upper center", ncols=4)  # beside no curve
    save(figure, file, "--plot")


def draw_survival(file: Path, zones: Sequence[tuple[str, Sequence[Trace]]], workers: int = 1) -> None:
    """Draw, for each zone, the share of its spells that last longer than a time, beside that of a synthetic trace that
    is fitted to it: on the left spells with capacity for so many workers, on the right spells without. Raises
    EnvironmentFailure, and InvalidSpec for traces that cannot be fitted."""
    figure = new_figure((10, 4.2), "--survival")
    for column, available in enumerate((True, False)):
        axes = figure.add_subplot(1, 2, column + 1)
        for (name, traces), colour in zip(zones, _colours(zones), strict=True):
            made, gap = like(name, traces, workers), tick_of(traces)
            hours = [age * gap / HOUR for age in range(LONGEST)]
            own = survival([trace.ticks(gap, workers) for trace in traces], available, LONGEST)
            axes.step(hours, own, where="post", color=colour, label=name)
            axes.step(
                hours, survival([made.ticks(gap)], available, LONGEST), where="post", color=colour, linestyle="--"
            )
        kind = "with" if available else "without"
        axes.set(xlabel="hours", ylabel="share that lasts longer", ylim=(0, 1.02), title=f"Spells {kind} capacity")
        axes.grid(visible=True, alpha=0.3)
    axes.plot([], [], "--", color="grey", label="synthetic")
    axes.legend()
    save(figure, file, "--survival")


def new_figure(size: tuple[float, float], option: str) -> Any:
    """An empty figure of this size in inches. `option` is named in errors. Raises EnvironmentFailure without
    matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise EnvironmentFailure(f"{option} needs matplotlib: pip install 'spotladder[sim]'") from None
    figure = Figure(figsize=size, dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, file: Path, option: str) -> None:
    """Write the figure as .png or .svg. Raises EnvironmentFailure if the file cannot be written."""
    import matplotlib as mpl

    try:
        with mpl.rc_context({"svg.hashsalt": "spotladder", "svg.fonttype": "none"}):
            figure.savefig(file, metadata={"Date": None} if file.suffix.lower() == ".svg" else None)
    except OSError as error:
        raise not_written(option, file, error) from None


def _costs(axes: Any, summaries: Sequence[Summary]) -> None:
    """For each policy, the cumulative distribution of the cost of its runs."""
    for summary, colour in zip(summaries, _colours(summaries), strict=True):
        costs = sorted(outcome.cost for outcome in summary.outcomes)
        shares = [(index + 1) / len(costs) for index in range(len(costs))]
        axes.step([costs[0], *costs], [0.0, *shares], where="post", color=colour, label=summary.policy)
    axes.set(xlabel="cost (USD)", ylabel="share of runs", ylim=(0, 1.02), title="Cost")
    axes.grid(visible=True, alpha=0.3)


def _ends(axes: Any, summaries: Sequence[Summary]) -> None:
    """One point for each run; a cross is a run without success. A line connects the means of the policies on the Pareto
    front."""
    for summary, colour in zip(summaries, _colours(summaries), strict=True):
        for succeeded, marker in ((True, "o"), (False, "x")):
            runs = [outcome for outcome in summary.outcomes if outcome.succeeded is succeeded]
            hours, costs = [run.finished / HOUR for run in runs], [run.cost for run in runs]
            axes.plot(hours, costs, marker, color=colour, alpha=0.7, markersize=5)
    best = frontier(summaries)
    means = [one.hours for one in best], [one.cost for one in best]
    axes.plot(*means, "D-", color="black", linewidth=0.8, markersize=4, label="Pareto front of the means")
    axes.legend(fontsize="small")
    axes.set(xlabel="ends after (h)", ylabel="cost (USD)", title="Cost and finish time (× without success)")
    axes.grid(visible=True, alpha=0.3)


def _work(axes: Any, summaries: Sequence[Summary]) -> None:
    """The finished work of the first run of each policy. A drop is work that was lost and is repeated; the slope is
    the goodput."""
    for summary, colour in zip(summaries, _colours(summaries), strict=True):
        samples = summary.outcomes[0].samples
        hours, work = [one.at / HOUR for one in samples], [one.work / HOUR for one in samples]
        axes.plot(hours, work, color=colour, label=summary.policy)
    longest = max(summary.outcomes[0].finished for summary in summaries) / HOUR
    axes.axline((0, 0), slope=1, color="grey", linewidth=0.8, linestyle=":")
    axes.set(
        xlim=(0, 1.02 * longest),
        ylim=(0, None),
        xlabel="hours after the start",
        ylabel="finished work (h)",
        title="Work over time (dotted: without interruptions)",
    )
    axes.grid(visible=True, alpha=0.3)


def _spent(axes: Any, summaries: Sequence[Summary]) -> None:
    """The cost of the first run of each policy."""
    for summary, colour in zip(summaries, _colours(summaries), strict=True):
        samples = summary.outcomes[0].samples
        axes.plot([one.at / HOUR for one in samples], [one.usd for one in samples], color=colour, label=summary.policy)
    axes.set(
        xlim=(0, None), ylim=(0, None), xlabel="hours after the start", ylabel="paid (USD)", title="Cost over time"
    )
    axes.grid(visible=True, alpha=0.3)


def _timeline(axes: Any, drawn: Sequence[tuple[str, SimulationOutcome]], jobs: int) -> None:
    """The tiers of each job of the first run of each policy; pale while nothing trains."""
    tiers = list(dict.fromkeys(tier for _name, one in drawn for tier in one.node_hours))
    colours = {tier: COLOURS[index % len(COLOURS)] for index, tier in enumerate(tiers)}
    for row, (_name, one) in enumerate(drawn):
        for part in one.segments:
            width = (part.until - part.since) / HOUR
            strength = 1.0 if part.trains else 0.25
            axes.barh(row, width, left=part.since / HOUR, height=0.6, color=colours[part.tier], alpha=strength)
    for tier, colour in colours.items():
        axes.barh(0, 0, color=colour, label=tier)
    title = "The run with seed 0" if jobs == 1 else "The run with seed 0: job 0 beside the name of its policy"
    axes.set(xlabel="hours after the start", title=title)
    axes.set_yticks(range(len(drawn)), [name for name, _one in drawn])
    axes.invert_yaxis()
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")  # beside the bars


def _colours(rows: Sequence[object]) -> list[str]:
    return [COLOURS[index % len(COLOURS)] for index in range(len(rows))]
