"""`spotladder plan`: estimates the cost and the risks of a job on its tiers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from spotladder.api.read import errors_located
from spotladder.cli import forecast
from spotladder.cli.formula import PUBLISHED_DISCOUNT, failures_text, plain_estimate, print_formula
from spotladder.cli.option_errors import option_errors, seconds
from spotladder.cli.options import ContextOption, KubeconfigOption
from spotladder.cli.output import Format, OutputOption, print_data, print_table
from spotladder.cli.plan_input import PlanArguments, assumed_program, read_plan_input, simulator_installed
from spotladder.cli.plan_options import (
    CheckpointGibOption,
    CommitTimeOption,
    EvictionsOption,
    FormulaOption,
    HoursOption,
    MaxFailuresOption,
    OverheadOption,
    RestartOption,
    RunsOption,
    SeedOption,
    SpotDiscountOption,
    SpotFractionOption,
    TraceOption,
    WorldOption,
)
from spotladder.cli.target import ClusterTarget
from spotladder.core.accounting.cost import CostScenario
from spotladder.core.accounting.held_nodes import HOUR
from spotladder.display.figures import numbered, span
from spotladder.errors import Refused
from spotladder.planner.break_even import break_even
from spotladder.planner.plan import Estimated, PlanInput, TierFacts, estimated
from spotladder.planner.risks import risks


def plan(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="File of the job.")] = None,
    *,
    hours: HoursOption,
    overhead: OverheadOption = None,
    evictions: EvictionsOption = None,
    world: WorldOption = None,
    trace: TraceOption = None,
    runs: RunsOption = 100,
    seed: SeedOption = 0,
    restart: RestartOption = "3m",
    commit_time: CommitTimeOption = None,
    checkpoint_gib: CheckpointGibOption = None,
    formula: FormulaOption = False,
    spot_fraction: SpotFractionOption = None,
    max_failures: MaxFailuresOption = None,
    spot_discount: SpotDiscountOption = None,
    output: OutputOption = Format.TABLE,
    context: ContextOption = None,
    kubeconfig: KubeconfigOption = None,
) -> None:
    """Estimate the cost, the duration and the risk of a job on its tiers.

    The estimate comes from simulated runs and from closed formulas. Prices and eviction rates come from the cluster's
    CapacityTiers, or from the pools of a world file. Nothing is started.

    \b
    Examples:
      spotladder plan job.yaml --hours 5
      spotladder plan job.yaml --hours 5 --world world.yaml --evictions-per-node-hour 0.1 -o json
      spotladder plan job.yaml --hours 5 --trace spot-a=us-east-1a.csv
      spotladder plan --formula --hours 5 --spot-fraction 0.6 --max-failures 5 --overhead 0.2
    """
    numbers = {"--spot-fraction": spot_fraction, "--max-failures": max_failures, "--spot-discount": spot_discount}
    if file is None:
        if not formula or overhead is None or spot_fraction is None or max_failures is None:
            raise Refused(
                "expected a job file: spotladder plan job.yaml --hours 5; without one, --formula needs --overhead, "
                "--spot-fraction and --max-failures"
            )
        of_a_job = {
            "--world": world, "--trace": trace, "--evictions-per-node-hour": evictions, "--commit-time": commit_time,
            "--checkpoint-gib": checkpoint_gib, "--context": context, "--kubeconfig": kubeconfig,
        }  # fmt: skip
        if wrong := next((name for name, value in of_a_job.items() if value is not None), None):
            raise Refused(f"{wrong} is for a job file: name one, or remove {wrong}")
        discount = PUBLISHED_DISCOUNT if spot_discount is None else spot_discount
        with option_errors():
            scenario = CostScenario(hours, spot_fraction, max_failures, overhead, discount)
        return print_formula(scenario, output)
    if wrong := next((name for name, value in numbers.items() if value is not None), None):
        raise Refused(f"{wrong} is for --formula without a job file: remove one of the two")
    first_step_after = seconds("--restart", restart)
    given = PlanArguments(
        file, hours, world, trace or (), evictions, first_step_after, overhead, commit_time, checkpoint_gib
    )
    plan_input, known = read_plan_input(given, ClusterTarget(None, context, kubeconfig))
    own, even = estimated(plan_input), break_even(plan_input)
    dangers, simulated = risks(plan_input, own), None
    if not formula and simulator_installed():
        assumptions = assumed_program(plan_input, known, given)
        with errors_located(file):
            simulated = forecast.simulate(plan_input, assumptions, runs, seed)
    if output is not Format.TABLE:
        data = None if simulated is None else forecast.plain(simulated, plan_input)
        return print_data({**_plain(plan_input, own, even), "risks": dangers, "simulation": data}, output)
    _print(plan_input, own, even)
    if simulated is not None:
        forecast.print_forecast(simulated, plan_input)
    elif not formula:
        typer.echo("no simulated runs: install 'spotladder[sim]'")
    for sentence in dangers:
        typer.echo(f"risk: {sentence}")
    return None


# --- output ----------------------------------------------------------------------------------------------------------


def _print(plan_input: PlanInput, own: Estimated | None, even: float | None) -> None:
    columns = ("Tier", "CapacityTier", "Type", "maxFailures", "$/node h", "On demand", "Evictions/node h", "Time here")
    rows = [_tier_row(facts, own) for facts in plan_input.tiers]
    print_table(
        columns, rows, f"{numbered(plan_input.spec.workers, 'worker')}, {plan_input.hours:.10g} h on demand only"
    )
    typer.echo()
    if own is not None:
        headings = ("On spot", "Failures", "Takes", "Cost", "Saved", "Saves up to (failures)")
        title = f"By the closed formulas, {60 * plan_input.overhead:.3g} min lost at each failure"
        print_table(headings, [_estimate_row(own)], title)
        _print_break_even(even)
    else:
        typer.echo("The closed formulas need the eviction rates of the spot tiers: set --evictions-per-node-hour")


def _print_break_even(factor: float | None) -> None:
    if factor == math.inf:
        typer.echo("it saves at every loss rate")
    elif factor is not None:
        typer.echo(f"it saves nothing from {factor:.3g} times the loss rate on")


def _tier_row(facts: TierFacts, own: Estimated | None) -> tuple[str, ...]:
    price = facts.tier.price
    return (
        facts.tier.name,
        facts.capacity,
        str(facts.tier.capacity_type),
        str(facts.tier.max_failures),
        f"{price.per_node_hour:.2f}" if price.known else "unknown",
        f"{price.on_demand:.2f}" if price.on_demand else "unknown",
        "unknown" if facts.known.evictions is None and facts.spot else f"{facts.known.evictions or 0:.3g}",
        "unknown" if own is None else span(own.expected.hours.get(facts.tier.name, 0.0) * HOUR),
    )


def _estimate_row(own: Estimated) -> tuple[str, ...]:
    result = own.cost
    unit = f"{result.cost:.2f} h" if own.usd is None else f"${own.usd:.2f}"
    unfinished = f" + {span(own.expected.left * HOUR)} left" if own.expected.left else ""
    return (
        f"{100 * own.scenario.spot_fraction:.0f} %",
        f"{own.expected.failures:.1f}",
        f"{span(own.scenario.total_hours * HOUR)}{unfinished}",
        unit,
        f"{100 * result.savings_fraction:.1f} %".replace("-", "−"),
        failures_text(result.break_even_failures),
    )


def _plain(plan_input: PlanInput, own: Estimated | None, even: float | None) -> dict[str, Any]:
    return {
        "hours": plan_input.hours,
        "overheadHours": round(plan_input.overhead, 6),
        "workers": plan_input.spec.workers,
        "onDemandUsdPerHour": plan_input.on_demand_price,
        "tiers": [
            {
                "name": facts.tier.name,
                "capacityTier": facts.capacity,
                "capacityType": str(facts.tier.capacity_type),
                "maxFailures": facts.tier.max_failures,
                "usdPerNodeHour": facts.tier.price.per_node_hour if facts.tier.price.known else None,
                "onDemandUsdPerNodeHour": facts.tier.price.on_demand or None,
                "evictionsPerNodeHour": facts.known.evictions,
                "expectedHours": None if own is None else round(own.expected.hours.get(facts.tier.name, 0.0), 6),
            }
            for facts in plan_input.tiers
        ],
        "estimate": None if own is None else _plain_estimate(own),
        "breakEvenLossRateFactor": None if even is None or even == math.inf else round(even, 6),
    }


def _plain_estimate(own: Estimated) -> dict[str, Any]:
    return {
        "spotFraction": round(own.scenario.spot_fraction, 6),
        "expectedFailures": round(own.expected.failures, 6),
        "totalHours": round(own.scenario.total_hours, 6),
        "hoursLeft": round(own.expected.left, 6),
        "costUsd": None if own.usd is None else round(own.usd, 4),
        **plain_estimate(own.cost),
    }
