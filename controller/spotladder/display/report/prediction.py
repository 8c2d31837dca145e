"""What was paid beside what it would have cost otherwise, and beside what the closed formulas say for this very run.

The formulas get what was measured: T, the hours for which nodes would have been held had nothing interrupted the run
(one start of the program, each step once, its end); α, the share of the new steps' time that was on spot; M, the
failures counted; Δt, the hours beyond T for each of them; the discount of spot as it was paid. The wait for the very
first nodes is in neither: it is the same with and without failures, and is not paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spotladder.core.accounting import HOUR
from spotladder.core.cost import Accounting, CostScenario, estimate
from spotladder.core.model import CapacityType, Seconds
from spotladder.display.figures import percent, span
from spotladder.display.report.facts import Facts
from spotladder.errors import InvalidSpec

ON_DEMAND = "on-demand-uninterrupted"

_READINGS = {
    Accounting.BLENDED: "formula: blended (as published)",
    Accounting.CONSERVATIVE: "formula: overhead on demand",
    Accounting.AT_SPOT_PRICE: "formula: overhead on spot",
}


@dataclass(frozen=True, slots=True)
class Measured:
    """The formulas' arguments as this run had them, and the on-demand price of all workers in USD per hour."""

    scenario: CostScenario
    price: float


@dataclass(frozen=True, slots=True)
class Yardstick:
    """One amount in USD to compare: `key` for programs, `name` for people."""

    key: str
    name: str
    cost: float


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """All amounts to compare, what was really paid first, and in one sentence what the formulas were given."""

    amounts: tuple[Yardstick, ...] = ()
    note: str = ""

    def __iter__(self) -> Iterator[Yardstick]:
        return iter(self.amounts)

    def __bool__(self) -> bool:
        return bool(self.amounts)

    def cost(self, key: str) -> float | None:
        """The amount of this key; None if there is none."""
        return next((each.cost for each in self.amounts if each.key == key), None)


def measured(facts: Facts) -> Measured | None:
    """The arguments of this run; None without prices or steps, or when they are out of what the formulas are for."""
    new = sum(each.new for each in facts.attempts)
    if new <= 0 or facts.node_hours <= 0 or facts.on_demand <= 0 or facts.unpriced:
        return None
    hours = (_startup(facts) + facts.time.new + _ending(facts)) / HOUR
    overhead = max(0.0, (facts.time.total - _first_wait(facts)) / HOUR - hours)
    on_spot = sum(each.new for each in facts.attempts if each.capacity_type is CapacityType.SPOT)
    failures = facts.failures
    spot = [record for tier, record in facts.tiers if tier.capacity_type is CapacityType.SPOT]
    spot_on_demand = sum(record.on_demand_cost for record in spot)
    try:
        scenario = CostScenario(
            hours=hours,
            spot_fraction=on_spot / new,
            max_failures=failures,
            overhead=overhead / failures if failures else 0.0,
            spot_discount=1 - sum(record.cost for record in spot) / spot_on_demand if spot_on_demand else 0.0,
        )
    except InvalidSpec:  # a run of three seconds, a spot price above on-demand
        return None
    return Measured(scenario, facts.on_demand / facts.node_hours * facts.spec.workers)


def _startup(facts: Facts) -> Seconds:
    """Seconds from the first ready gang to its first step."""
    first = next((attempt for attempt in facts.attempts if attempt.work and attempt.whole), None)
    return max(0.0, first.work[0].start - first.whole[0].start) if first else 0.0


def _ending(facts: Facts) -> Seconds:
    """From the last step to the end of a program that came to its own end: an evaluation, a last commit."""
    last = facts.attempts[-1]
    if facts.exit_code != 0 or not last.work or not last.whole:
        return 0.0
    return max(0.0, last.whole[-1].end - last.work[-1].end)


def _first_wait(facts: Facts) -> Seconds:
    """Seconds until the gang of the first attempt was ready; 0 if it never was."""
    return facts.attempts[0].whole[0].start if facts.attempts[0].whole else 0.0


def yardsticks(facts: Facts) -> Yardsticks:
    """All amounts; none without prices."""
    if facts.on_demand <= 0 or facts.unpriced:
        return Yardsticks()
    paid = Yardstick("paid", "paid", facts.spent)
    same_nodes = Yardstick("on-demand-same-nodes", "the same nodes on demand", facts.on_demand)
    run = measured(facts)
    if run is None:
        return Yardsticks((paid, same_nodes))
    scenario = run.scenario
    formulas = [
        Yardstick(accounting.value, name, estimate(scenario, accounting).cost * run.price)
        for accounting, name in _READINGS.items()
    ]
    uninterrupted = Yardstick(ON_DEMAND, "on-demand, uninterrupted", scenario.hours * run.price)
    note = (
        f"The closed formulas were given what this run measured: T = {span(scenario.hours * HOUR)}, "
        f"α = {percent(scenario.spot_fraction)}, M = {scenario.max_failures}, Δt = {span(scenario.overhead * HOUR)}, "
        f"spot at {percent(1 - scenario.spot_discount)} of the on-demand price. They charge every hour of the run; "
        "really paid are only the hours in which nodes were held."
    )
    return Yardsticks((paid, *formulas, uninterrupted, same_nodes), note)
