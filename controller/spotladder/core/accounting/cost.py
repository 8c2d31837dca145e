"""The savings of spot capacity by closed formulas, before a job.

The formulas are the published ones of the method that spotladder implements. In their symbols, T is the job's hours if
it ran on demand only (`hours`), α the share of the work done on spot before the fallback (`spot_fraction`), M the
tolerated failures (`max_failures`), Δt the hours that each failure costs (`overhead`), Co the on-demand price per hour
(1 here: costs are in on-demand hours) and 1 - d the spot price (`spot_discount` d):

    Ttotal = T + M·Δt                Cold = T·Co

They disagree about the price of the overhead M·Δt, so this module has all three variants (`Accounting`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from spotladder.errors import InvalidSpec

MAX_NUMBER = 1_000_000
"""Maximum number of hours or failures; a larger one is a typing error."""


class Accounting(StrEnum):
    """The price at which the overhead of failures is counted."""

    CONSERVATIVE = "conservative"
    """The on-demand price: To = (1 - α)·T + M·Δt, as in the published split of the hours."""
    BLENDED = "blended"
    """Both prices in proportion: Cnew = Ttotal·(1 - d·α), the published cost and the default for comparison."""
    AT_SPOT_PRICE = "at-spot-price"
    """The spot price, since failures happen there: Ts = α·T + M·Δt."""


@dataclass(frozen=True, slots=True)
class CostScenario:
    """The arguments of the formulas, in hours and fractions. Raises InvalidSpec for an invalid argument."""

    hours: float
    spot_fraction: float
    max_failures: int
    overhead: float
    spot_discount: float = 0.9

    def __post_init__(self) -> None:
        _within("hours", self.hours, 0.001, MAX_NUMBER)
        _within("spot-fraction", self.spot_fraction, 0, 1)
        _within("max-failures", self.max_failures, 0, MAX_NUMBER)
        _within("overhead", self.overhead, 0, MAX_NUMBER)
        _within("spot-discount", self.spot_discount, 0, 1)

    @property
    def overhead_hours(self) -> float:
        """M·Δt: the hours that failures add."""
        return self.max_failures * self.overhead

    @property
    def total_hours(self) -> float:
        """Ttotal."""
        return self.hours + self.overhead_hours

    @property
    def overhead_share(self) -> float:
        """M·Δt / T: the additional time compared with on-demand only, as a fraction."""
        return self.overhead_hours / self.hours


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a scenario, in hours at the on-demand price, and that of the same job on demand only.

    `break_even` is the additional time compared with on-demand only at which nothing is saved, as a fraction of the
    job's hours; `break_even_failures` is the corresponding number of failures. Both are infinite if spot time costs
    nothing.
    """

    accounting: Accounting
    cost: float
    on_demand_cost: float
    break_even: float
    break_even_failures: float

    @property
    def savings(self) -> float:
        """The savings; negative if spot costs more."""
        return self.on_demand_cost - self.cost

    @property
    def savings_fraction(self) -> float:
        """The savings as a fraction of the on-demand cost."""
        return self.savings / self.on_demand_cost


def estimate(scenario: CostScenario, accounting: Accounting = Accounting.BLENDED) -> Estimate:
    """The closed formulas."""
    spot_price = 1 - scenario.spot_discount
    work = scenario.hours * _work_price(scenario.spot_fraction, scenario.spot_discount)
    overhead = scenario.overhead_hours
    match accounting:
        case Accounting.CONSERVATIVE:
            cost = work + overhead
        case Accounting.AT_SPOT_PRICE:
            cost = work + overhead * spot_price
        case Accounting.BLENDED:
            cost = work + overhead * _work_price(scenario.spot_fraction, scenario.spot_discount)
    limit = break_even(scenario.spot_fraction, scenario.spot_discount, accounting)
    return Estimate(accounting, cost, scenario.hours, limit, _most_failures(limit, scenario))


def break_even(spot_fraction: float, spot_discount: float = 0.9, accounting: Accounting = Accounting.BLENDED) -> float:
    """The additional time compared with on-demand only at which nothing is saved, as a fraction of T.

    Blended: 1/(1 - d·α) - 1, so 117 % for α = 0.6 and d = 0.9. The published table has 217 % there, which is the ratio
    of the two durations (2.17), not their relative difference.
    """
    saved = spot_discount * spot_fraction
    match accounting:
        case Accounting.CONSERVATIVE:
            return saved
        case Accounting.AT_SPOT_PRICE:
            return _ratio(saved, 1 - spot_discount)
        case Accounting.BLENDED:
            return _ratio(saved, 1 - saved)


def _work_price(spot_fraction: float, spot_discount: float) -> float:
    return 1 - spot_discount * spot_fraction


def _ratio(saved: float, price: float) -> float:
    if saved == 0:
        return 0.0
    return saved / price if price > 0 else math.inf


def _most_failures(limit: float, scenario: CostScenario) -> float:
    if scenario.overhead == 0:
        return math.inf
    failures = limit * scenario.hours / scenario.overhead
    return math.floor(failures + 1e-9) if math.isfinite(failures) else math.inf


def _within(name: str, value: float, least: float, most: float) -> None:
    if not least <= value <= most:
        hint = f"; for {value:g} % write {value / 100:g}" if most == 1 < value <= 100 else ""
        raise InvalidSpec(f"must be between {least:.10g} and {most:.10g}, not {value:g}{hint}", path=name)
