"""`spotladder cost`: closed cost formulas and a break-even table."""

from __future__ import annotations

import math
import shutil
from typing import Annotated

import typer

from spotladder.cli.option_errors import option_errors
from spotladder.cli.output import Format, OutputOption, on_terminal, print_data, print_table
from spotladder.core.cost import Accounting, CostScenario, Estimate, break_even, estimate

FRACTIONS = tuple(tenth / 10 for tenth in range(1, 10))
"""Spot fractions of the break-even table."""

PUBLISHED_NOTE = (
    'The published table prints "217 %" for a spot fraction of 0.6. That is the ratio of the two durations (2.17×); '
    "the job may take 117 % longer."
)
_PUBLISHED_DISCOUNT = 0.9
_LONGEST_BAR, _SHORTEST_BAR = 40, 10
_BESIDE_BAR = 40
"""Columns of the terminal for the figures beside a bar."""


def cost(
    *,
    hours: Annotated[float, typer.Option(help="Duration of the job on demand only, in hours (T).")],
    spot_fraction: Annotated[float, typer.Option(help="Share of the work on spot before the fallback, 0 to 1 (α).")],
    max_failures: Annotated[int, typer.Option(help="Number of failures tolerated on spot (M).")],
    overhead: Annotated[float, typer.Option(help="Cost of each failure in hours: restart and repeated work (Δt).")],
    spot_discount: Annotated[
        float, typer.Option(help="Discount of spot compared with on demand, 0 to 1.")
    ] = _PUBLISHED_DISCOUNT,
    accounting: Annotated[
        Accounting,
        typer.Option(
            help="Accounting of the overhead: at the on-demand price, at both prices in proportion, or at the spot "
            "price."
        ),
    ] = Accounting.BLENDED,
    output: OutputOption = Format.TABLE,
) -> None:
    """Compute the savings of spot capacity by closed formulas.

    Costs are in on-demand hours: 2.76 h is the price of 2.76 hours on demand.

    \b
    Examples:
      spotladder cost --hours 5 --spot-fraction 0.6 --max-failures 5 --overhead 0.2
    """
    with option_errors():
        scenario = CostScenario(hours, spot_fraction, max_failures, overhead, spot_discount)
    if output is not Format.TABLE:
        print_data(_plain(scenario, accounting), output)
        return
    _print_estimates(scenario, accounting)
    typer.echo()
    _print_break_even(scenario, accounting, chart=on_terminal())


def _print_estimates(scenario: CostScenario, accounting: Accounting) -> None:
    rows = []
    for kind in Accounting:
        result = estimate(scenario, kind)
        rows.append(
            (
                f"{kind} *" if kind is accounting else str(kind),
                f"{result.cost:.2f} h",
                f"{result.savings:.2f} h".replace("-", "−"),
                f"{100 * result.savings_fraction:.1f} %".replace("-", "−"),
                _count(result.break_even_failures),
            )
        )
    spot = f"{100 * scenario.spot_fraction:g} % on spot and {scenario.max_failures} failures"
    title = f"{scenario.hours:g} h on demand only; {scenario.total_hours:g} h with {spot}"
    print_table(("Accounting", "Cost", "Saved", "Saved %", "Saves up to (failures)"), rows, title)


def _print_break_even(scenario: CostScenario, accounting: Accounting, *, chart: bool) -> None:
    columns = ["Spot fraction", "Longer by", "Ratio"]
    limits = {fraction: break_even(fraction, scenario.spot_discount, accounting) for fraction in FRACTIONS}
    finite = [limit for limit in limits.values() if math.isfinite(limit)]
    widest = max([*finite, scenario.overhead_share, 1e-9])
    room = max(_SHORTEST_BAR, min(_LONGEST_BAR, shutil.get_terminal_size().columns - _BESIDE_BAR))
    rows = []
    for fraction, limit in limits.items():
        row = [f"{fraction:.1f}", _percent(limit), f"{1 + limit:.2f}×" if math.isfinite(limit) else "–"]
        rows.append([*row, _bar(limit, scenario.overhead_share, widest, room)] if chart else row)
    if chart:
        columns.append(f"│ = this job, {_percent(scenario.overhead_share)} longer: longer bars save money")
    print_table(columns, rows, f"Break-even ({accounting}): how much longer than on demand the job may take")
    if accounting is Accounting.BLENDED and scenario.spot_discount == _PUBLISHED_DISCOUNT:
        typer.echo(PUBLISHED_NOTE)


def _bar(limit: float, here: float, widest: float, room: int) -> str:
    """A bar whose length is the limit, with a mark at the job's own overhead; `room` columns for the longest bar."""
    length = room if math.isinf(limit) else round(room * limit / widest)
    mark = min(room - 1, round(room * here / widest))
    cells = ["█" if index < length else " " for index in range(room)]
    cells[mark] = "│" if mark >= length else "┃"
    return "".join(cells).rstrip()


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.1f} %" if math.isfinite(fraction) else "any time"


def _count(failures: float) -> str:
    return f"{failures:g}" if math.isfinite(failures) else "any number"


def _plain(scenario: CostScenario, accounting: Accounting) -> dict[str, object]:
    chosen = estimate(scenario, accounting)
    return {
        "scenario": {
            "hours": scenario.hours,
            "spotFraction": scenario.spot_fraction,
            "maxFailures": scenario.max_failures,
            "overheadHours": scenario.overhead,
            "spotDiscount": scenario.spot_discount,
            "totalHours": scenario.total_hours,
        },
        "accounting": str(accounting),
        **_plain_estimate(chosen),
        "accountings": {str(kind): _plain_estimate(estimate(scenario, kind)) for kind in Accounting},
        "breakEven": [
            {
                "spotFraction": fraction,
                "longerPercent": _rounded(100 * break_even(fraction, scenario.spot_discount, accounting)),
            }
            for fraction in FRACTIONS
        ],
    }


def _plain_estimate(result: Estimate) -> dict[str, object]:
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
