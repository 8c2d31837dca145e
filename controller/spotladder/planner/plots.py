"""The picture of a plan: the distribution of its cost, the values of each what-if, and the commit interval."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spotladder.core.accounting import HOUR
from spotladder.planner.advice import IntervalAdvice
from spotladder.planner.simulated import Forecast
from spotladder.sim.plots import COLOURS, new_figure, save

OPTION = "--plot"

Variant = tuple[str, Sequence[tuple[str, Forecast]]]
"""The text of a what-if, and its values with their forecasts."""


def draw(
    file: Path, own: Forecast, proposed: Forecast | None, variants: Sequence[Variant], interval: IntervalAdvice | None
) -> None:
    """Draw the plan into a .png or .svg file. Raises EnvironmentFailure without matplotlib, or if the file cannot be
    written."""
    panels = 1 + len(variants) + (interval is not None)
    rows = (panels + 1) // 2
    figure = new_figure((10 if panels > 1 else 5.5, 3.8 * rows), OPTION)
    axes = [figure.add_subplot(rows, min(2, panels), index + 1) for index in range(panels)]
    _costs(axes[0], own, proposed)
    for place, (option, results) in zip(axes[1:], variants, strict=False):
        _values(place, option, results)
    if interval is not None:
        _intervals(axes[-1], interval)
    save(figure, file, OPTION)


def _costs(axes: Any, own: Forecast, proposed: Forecast | None) -> None:
    """The cumulative distribution of the cost of the job as written, and with the proposed settings."""
    for found, name, colour in ((own, "as written", COLOURS[0]), (proposed, "proposed", COLOURS[2])):
        if found is not None:
            costs = found.cost.values
            shares = [(index + 1) / len(costs) for index in range(len(costs))]
            axes.step([costs[0], *costs], [0.0, *shares], where="post", color=colour, label=name)
    axes.set(xlabel="cost (USD)", ylabel="share of runs", ylim=(0, 1.02), title="Cost")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


def _values(axes: Any, option: str, results: Sequence[tuple[str, Forecast]]) -> None:
    """Mean cost and p90 of each value, and the share of the runs that succeed."""
    places = range(len(results))
    axes.plot(places, [found.cost.mean for _text, found in results], "o-", color=COLOURS[0], label="mean cost")
    axes.plot(places, [found.cost.at[90] for _text, found in results], "o--", color=COLOURS[0], label="p90")
    axes.set(ylabel="cost (USD)", ylim=(0, None), title=option)
    axes.set_xticks(places, [text for text, _found in results])
    success = axes.twinx()
    success.plot(places, [100 * found.success for _text, found in results], "s:", color=COLOURS[1], label="succeed")
    success.set(ylabel="runs that succeed (%)", ylim=(0, 105))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(loc="lower left", fontsize="small")
    success.legend(loc="lower right", fontsize="small")


def _intervals(axes: Any, interval: IntervalAdvice) -> None:
    """The commit interval over the age of the capacity."""
    ages = [at.age / HOUR for at in interval.curve]
    minutes = [at.interval / 60 for at in interval.curve]
    axes.step(
        [*ages, 1.3 * ages[-1]],
        [*minutes, minutes[-1]],
        where="post",
        color=COLOURS[0],
        label=f"by age, from {interval.source}",
    )
    axes.axhline(interval.interval / 60, color=COLOURS[1], linestyle="--", label="for the mean loss rate")
    axes.set(
        xlabel="age of the capacity (h)",
        ylabel="commit interval (min)",
        ylim=(0, None),
        title="Commit interval (Young)",
    )
    axes.grid(visible=True, alpha=0.3)
    axes.legend()
