"""The picture of a plan: the distribution of its cost, the values of each what-if and of each setting that is advised,
and the commit interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.core.accounting import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import FOR_EVER
from spotladder.planner.advice import IntervalAdvice
from spotladder.planner.search import Curves, Tried
from spotladder.planner.simulated import Forecast
from spotladder.sim.plots import COLOURS, new_figure, save

OPTION = "--plot"


@dataclass(frozen=True, slots=True)
class Curve:
    """The mean cost in USD and the share of the runs that succeed for each value of a setting. `p90` has that
    percentile of the costs, and is empty if it is not drawn."""

    title: str
    values: tuple[str, ...]
    usd: tuple[float, ...]
    success: tuple[float, ...]
    p90: tuple[float, ...] = ()


def of_what_if(option: str, results: Sequence[tuple[str, Forecast]]) -> Curve:
    """The curve of a what-if: its text, and its values with their forecasts."""
    found = [one for _text, one in results]
    return Curve(
        option,
        tuple(text for text, _one in results),
        tuple(one.cost.mean for one in found),
        tuple(one.success for one in found),
        tuple(one.cost.at[90] for one in found),
    )


def of_search(found: Curves) -> list[Curve]:
    """The curves from which the advice follows, of those settings that have several values."""
    limits = {"∞" if value == FOR_EVER else str(value): one for value, one in found.max_failures.items()}
    settings: dict[str, dict[str, Tried]] = {
        "Order of the tiers": {"\n".join(names): one for names, one in found.orders.items()},
        "maxFailures on all spot tiers": limits,
        **{
            f"provisionTimeout of {name}": {format_duration(value): one for value, one in values.items()}
            for name, values in found.provision_timeouts.items()
        },
    }
    return [
        Curve(
            title, tuple(tried), tuple(one.usd for one in tried.values()), tuple(one.success for one in tried.values())
        )
        for title, tried in settings.items()
        if len(tried) > 1
    ]


def draw(
    file: Path, own: Forecast, proposed: Forecast | None, curves: Sequence[Curve], interval: IntervalAdvice | None
) -> None:
    """Draw the plan into a .png or .svg file. Raises EnvironmentFailure without matplotlib, or if the file cannot be
    written."""
    panels = 1 + len(curves) + (interval is not None)
    rows = (panels + 1) // 2
    figure = new_figure((10 if panels > 1 else 5.5, 3.8 * rows), OPTION)
    axes = [figure.add_subplot(rows, min(2, panels), index + 1) for index in range(panels)]
    _costs(axes[0], own, proposed)
    for place, curve in zip(axes[1:], curves, strict=False):
        _values(place, curve)
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


def _values(axes: Any, curve: Curve) -> None:
    """Mean cost and p90 of each value, and the share of the runs that succeed."""
    places = range(len(curve.values))
    axes.plot(places, curve.usd, "o-", color=COLOURS[0], label="mean cost")
    if curve.p90:
        axes.plot(places, curve.p90, "o--", color=COLOURS[0], label="p90")
    axes.set(ylabel="cost (USD)", ylim=(0, None), title=curve.title)
    axes.set_xticks(places, curve.values)
    success = axes.twinx()
    success.plot(places, [100 * share for share in curve.success], "s:", color=COLOURS[1], label="succeed")
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
