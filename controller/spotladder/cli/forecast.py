"""The simulated part of `spotladder plan`: its tables and data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from spotladder.cli.output import print_table
from spotladder.cli.terminal import progress
from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.durations import format_duration
from spotladder.core.model import FOR_EVER
from spotladder.display.figures import NONE, span
from spotladder.planner.plan import PlanInput, time_limit

if TYPE_CHECKING:
    from spotladder.planner.advice import IntervalAdvice, LimitAdvice
    from spotladder.planner.simulated import Assumptions, Distribution, Forecast

LEAST_WAITING = 0.01
"""Share of the cost from which the cost of waiting nodes is shown."""

COLUMNS = ("Of the runs", "Mean", "p10", "p50", "p90", "p99")


@dataclass(frozen=True, slots=True)
class Simulated:
    """The forecast of the job, and the settings that follow from it and from the statistics."""

    assumptions: Assumptions
    seed: int
    own: Forecast
    limit: LimitAdvice | None
    interval: IntervalAdvice | None
    on_demand_usd: float | None


def simulate(plan_input: PlanInput, assumptions: Assumptions, runs: int, seed: int) -> Simulated:
    """Simulate the job, and other values of maxFailures on the same seeds. Raises InvalidSpec."""
    from spotladder.planner.advice import interval, max_failures
    from spotladder.planner.simulated import expected_uninterrupted_usd, outcomes, summed

    seeds = range(seed, seed + runs)
    with progress(runs) as bar:
        own = outcomes(plan_input, assumptions, seeds, bar.update)
    best = interval(plan_input, assumptions.commit_time)
    limit = max_failures(plan_input, assumptions, own, seeds)
    usd = expected_uninterrupted_usd(plan_input, assumptions)
    return Simulated(assumptions, seed, summed(plan_input, own), limit, best, usd)


def print_forecast(found: Simulated, plan_input: PlanInput) -> None:
    """The tables of the terminal."""
    from spotladder.planner.assumptions import observed

    own = found.own
    share = f"{100 * own.success:.0f} % ({100 * own.success_range[0]:.0f}–{100 * own.success_range[1]:.0f} %)"
    limited = plan_input.spec.deadline is not None or plan_input.spec.max_duration is not None
    typer.echo()
    title = f"Simulated: {own.runs} runs, {share} succeed" + (" before the deadline" if limited else "")
    ends = "Ends after" if own.success in (0.0, 1.0) else "Ends after, if it succeeds"
    rows = [_row("Cost", own.cost, "${:.2f}".format), _row(ends, own.hours, _hours)]
    rows += [_row(f"Cost on {tier.name}", tier.cost, "${:.2f}".format) for tier in own.tiers]
    rows += [_row(f"Time on {tier.name}", tier.hours, _hours) for tier in own.tiers]
    print_table(COLUMNS, rows, title)
    typer.echo()
    used = ", ".join(f"{tier.name} {100 * tier.used:.0f} %" for tier in own.tiers)
    typer.echo(
        f"used by: {used} of the runs; {own.losses.mean:.1f} losses, {_hours(own.recomputed.mean)} recomputed (means)"
    )
    of_share = f", that of the share of runs ±{100 * own.success_error:.1f} %" if own.success_error else ""
    typer.echo(f"confidence: the standard error of the mean cost is ±${own.cost.error:.2f}{of_share}")
    if own.waiting >= LEAST_WAITING * own.cost.mean > 0:
        typer.echo(
            f"of that, ${own.waiting:.2f} are for nodes that wait until their gang is complete and the program starts"
        )
    if parts := [f"${usd:.2f} for {name}" for name, usd in asdict(own.extra).items() if usd]:
        typer.echo(f"of that, {', '.join(parts)}, which the closed formulas do not include")
    if found.on_demand_usd and own.success:
        saved = f"{100 * (1 - own.cost.mean / found.on_demand_usd):.1f} %".replace("-", "−")
        typer.echo(f"on demand without interruptions: ${found.on_demand_usd:.2f}; the mean saves {saved}")
    typer.echo()
    for sentence in advice(found, plan_input):
        typer.echo(f"advice: {sentence}")
    for sentence in observed(plan_input):
        typer.echo(f"observed: {sentence}")
    for sentence in _assumed(found, plan_input):
        typer.echo(f"assumed: {sentence}")


def _assumed(found: Simulated, plan_input: PlanInput) -> list[str]:
    """The assumptions of the forecast, one sentence each."""
    from spotladder.planner.assumptions import assumed, chosen_by

    return [*assumed(found.assumptions, plan_input), chosen_by(plan_input.policy)]


def advice(found: Simulated, plan_input: PlanInput) -> list[str]:
    """Suggestions, one sentence each."""
    sentences = []
    for facts in plan_input.tiers:
        ready, timeout = facts.known.ready_after, facts.tier.provision_timeout
        ready = found.assumptions.ready_after if ready is None else ready
        if timeout < ready:
            why = f"it is {format_duration(timeout)}, and a node is ready after {format_duration(ready)}"
            sentences.append(f"raise provisionTimeout of {facts.tier.name}: {why}")
    if found.limit is not None:
        sentences.append(_better_limit(found.limit))
    if (best := found.interval) is not None:
        sentences.append(
            f"commit every {_rounded(best.interval)}, which costs {100 * best.share:.1f} % of the time"
            + ("" if best.own_share is None else f" (the job's interval: {100 * best.own_share:.1f} %)")
        )
    limit = time_limit(plan_input.spec, plan_input.hours)
    spot = [facts for facts in plan_input.tiers if facts.spot]
    if limit is not None and spot and (hours := found.own.ends_within(0.9)) is not None:
        slack = limit - hours * HOUR
        if slack > 0:
            sentences.append(
                f"provisionTimeout: the deadline leaves {_rounded(slack)} after nine of ten runs; keep the sum of the "
                "timeouts of the spot tiers below that"
            )
    return sentences


def _better_limit(found: LimitAdvice) -> str:
    """The value of maxFailures and its effect."""
    value = "-1 (unlimited)" if found.max_failures == FOR_EVER else str(found.max_failures)
    effect = f"${found.usd[1]:.2f} instead of ${found.usd[0]:.2f}"
    if found.success[1] != found.success[0]:
        effect += f", and {100 * found.success[1]:.0f} % of the runs succeed instead of {100 * found.success[0]:.0f} %"
    saving = f"a saving of ${found.saving:.2f} ± {found.error:.2f}".replace("$-", "−$")
    return (
        f"use maxFailures {value} on all spot tiers: {effect} "
        f"({saving}, mean and standard error of {found.runs} pairs of runs)"
    )


def plain(found: Simulated, plan_input: PlanInput) -> dict[str, Any]:
    """The forecast as data for JSON and YAML."""
    from spotladder.planner.assumptions import observed

    limit, interval = found.limit, found.interval
    return {
        "seed": found.seed,
        **forecast_data(found.own),
        "onDemandUsd": None if found.on_demand_usd is None else round(found.on_demand_usd, 4),
        "advice": {
            "maxFailures": None
            if limit is None
            else {
                "value": limit.max_failures,
                "costUsd": round(limit.usd[1], 4),
                "successProbability": round(limit.success[1], 4),
                "savingUsd": round(limit.saving, 4),
                "savingUsdStandardError": round(limit.error, 4),
                "runs": limit.runs,
            },
            "commitIntervalSeconds": None if interval is None else round(interval.interval, 1),
            "sentences": advice(found, plan_input),
        },
        "observations": observed(plan_input),
        "assumptions": _assumed(found, plan_input),
    }


def forecast_data(result: Forecast) -> dict[str, Any]:
    """The runs of one variant of a job as data for JSON and YAML."""
    return {
        "runs": result.runs,
        "successProbability": round(result.success, 4),
        "successProbabilityRange": [round(value, 4) for value in result.success_range],
        "successProbabilityStandardError": round(result.success_error, 4),
        "costUsd": _distribution(result.cost),
        "costUsdStandardError": round(result.cost.error, 4),
        "finishHours": None if result.hours is None else _distribution(result.hours),
        "losses": round(result.losses.mean, 4),
        "lossesPercentiles": _percentiles(result.losses),
        "recomputedHours": round(result.recomputed.mean, 4),
        "recomputedHoursPercentiles": _percentiles(result.recomputed),
        "overheadHours": round(result.overhead, 4),
        "waitingUsd": round(result.waiting, 4),
        "extraUsd": {name: round(usd, 4) for name, usd in asdict(result.extra).items()},
        "tiers": [
            {
                "name": tier.name,
                "usedBy": round(tier.used, 4),
                "hours": round(tier.hours.mean, 4),
                "hoursPercentiles": _percentiles(tier.hours),
                "costUsd": _distribution(tier.cost),
                "losses": round(tier.losses.mean, 4),
                "lossesPercentiles": _percentiles(tier.losses),
                "recomputedHours": round(tier.recomputed.mean, 4),
                "recomputedHoursPercentiles": _percentiles(tier.recomputed),
            }
            for tier in result.tiers
        ],
    }


def _distribution(values: Distribution) -> dict[str, float]:
    return {"mean": round(values.mean, 4), **_percentiles(values)}


def _percentiles(values: Distribution) -> dict[str, float]:
    return {f"p{percent}": round(value, 4) for percent, value in values.at.items()}


def _row(name: str, values: Distribution | None, text: Callable[[float], str]) -> tuple[str, ...]:
    if values is None:
        return (name, *[NONE] * (len(COLUMNS) - 1))
    return (name, text(values.mean), *(text(value) for value in values.at.values()))


def _hours(hours: float) -> str:
    return span(hours * HOUR)


def rounded(seconds: float) -> float:
    """Rounds to whole seconds, at least 1, and from ten minutes to whole minutes."""
    return max(1.0, float(round(seconds)) if seconds < 600 else 60.0 * round(seconds / 60))


def _rounded(seconds: float) -> str:
    return format_duration(rounded(seconds))
