"""The closed formulas for given numbers, and a break-even table: `spotladder plan --formula` without a job."""

from __future__ import annotations

import math

import typer

from spotladder.cli.output import Format, print_data, print_table
from spotladder.core.accounting.cost import Accounting, CostScenario, Estimate, break_even, estimate

FRACTIONS = tuple(tenth / 10 for tenth in range(1, 10))
"""Spot fractions of the break-even table."""

PUBLISHED_DISCOUNT = 0.9


def print_formula(scenario: CostScenario, output: Format) -> None:
    """Print the savings of spot capacity. Costs are in on-demand hours: 2.76 h is the price of 2.76 hours on demand."""
    if output is not Format.TABLE:
        return print_data(_plain(scenario), output)
    _print_estimates(scenario)
    typer.echo()
    _print_break_even(scenario)
    return None


def _print_estimates(scenario: CostScenario) -> None:
    rows = []
    for kind in Accounting:
        result = estimate(scenario, kind)
        rows.append(
            (
                f"{kind} *" if kind is Accounting.BLENDED else str(kind),
                f"{result.cost:.2f} h",
                f"{result.savings:.2f} h".replace("-", "−"),
                f"{100 * result.savings_fraction:.1f} %".replace("-", "−"),
                failures_text(result.break_even_failures),
            )
        )
    spot = f"{100 * scenario.spot_fraction:g} % on spot and {scenario.max_failures} failures"
    title = f"{scenario.hours:.10g} h on demand only; {scenario.total_hours:.10g} h with {spot}"
    print_table(("Accounting", "Cost", "Saved", "Saved %", "Saves up to (failures)"), rows, title)


def _print_break_even(scenario: CostScenario) -> None:
    rows = []
    for fraction in FRACTIONS:
        limit = break_even(fraction, scenario.spot_discount)
        rows.append((f"{fraction:.1f}", _percent(limit), f"{1 + limit:.2f}×" if math.isfinite(limit) else "–"))
    title = f"Break-even ({Accounting.BLENDED}): how much longer than on demand the job may take"
    print_table(("Spot fraction", "Longer by", "Ratio"), rows, title)
    typer.echo(f"this job takes {_percent(scenario.overhead_share)} longer")


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if math.isfinite(fraction) else "any time"


def failures_text(failures: float) -> str:
    """A number of failures, which may be infinite."""
    return f"{failures:.0f}" if math.isfinite(failures) else "any number"


def _plain(scenario: CostScenario) -> dict[str, object]:
    return {
        "scenario": {
            "hours": scenario.hours,
            "spotFraction": scenario.spot_fraction,
            "maxFailures": scenario.max_failures,
            "overheadHours": scenario.overhead,
            "spotDiscount": scenario.spot_discount,
            "totalHours": scenario.total_hours,
        },
        **plain_estimate(estimate(scenario)),
        "accountings": {str(kind): plain_estimate(estimate(scenario, kind)) for kind in Accounting},
        "breakEven": [
            {
                "spotFraction": fraction,
                "longerPercent": _rounded(100 * break_even(fraction, scenario.spot_discount)),
            }
            for fraction in FRACTIONS
        ],
    }


def plain_estimate(result: Estimate) -> dict[str, object]:
    """The estimate as data for JSON and YAML."""
    return {
        "costOnDemandHours": _rounded(result.cost),
        "onDemandHours": _rounded(result.on_demand_cost),
        "savedOnDemandHours": _rounded(result.savings),
        "savedPercent": _rounded(100 * result.savings_fraction),
        "breakEvenPercent": _rounded(100 * result.break_even),
        "breakEvenFailures": _rounded(result.break_even_failures),
    }


def _rounded(value: float) -> float | None:
    """The value rounded to 6 digits; None if it is infinite."""
    return round(value, 6) if math.isfinite(value) else None
