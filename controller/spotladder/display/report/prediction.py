"""Compares the cost of a run with the cost of alternatives and with the results of the closed formulas.

The formulas get measured arguments: T, the hours of an uninterrupted run (one start of the program, each step once
with all workers, its end); α, the share of new steps' time on spot; M, the counted failures; Δt, the hours beyond T for
each failure; the measured discount of spot. Neither side includes the wait for the first nodes: it is the same with and
without failures, and is not paid for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spotladder.core.accounting import HOUR
from spotladder.core.cost import Accounting, CostScenario, estimate
from spotladder.core.model import CapacityType, Seconds
from spotladder.core.savings import uninterrupted_usd
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
    """The formulas' arguments for this run, and the on-demand price of all workers in USD per hour."""

    scenario: CostScenario
    price: float


@dataclass(frozen=True, slots=True)
class ComparedCost:
    """One amount in USD to compare. `key` is its name for programs, `name` its label for users."""

    key: str
    name: str
    cost: float


@dataclass(frozen=True, slots=True)
class ComparedCosts:
    """All amounts to compare, the paid cost first, and a sentence with the formulas' arguments."""

    amounts: tuple[ComparedCost, ...] = ()
    note: str = ""

    def __iter__(self) -> Iterator[ComparedCost]:
        return iter(self.amounts)

    def __bool__(self) -> bool:
        return bool(self.amounts)

    def cost(self, key: str) -> float | None:
        """The amount with this key; None if the key is missing."""
        return next((each.cost for each in self.amounts if each.key == key), None)


def measured(facts: Facts) -> Measured | None:
    """The arguments of this run; None without prices or steps, or if they are outside of the formulas' domain."""
    new = sum(each.with_all_workers for each in facts.attempts)
    if new <= 0 or facts.node_hours <= 0 or facts.on_demand <= 0 or facts.unpriced:
        return None
    hours = (_startup(facts) + new + _ending(facts)) / HOUR
    overhead = max(0.0, (facts.time.total - _first_wait(facts)) / HOUR - hours)
    on_spot = sum(each.with_all_workers for each in facts.attempts if each.capacity_type is CapacityType.SPOT)
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
    except InvalidSpec:  # Such as a run of three seconds, or a spot price above on-demand.
        return None
    return Measured(scenario, facts.on_demand / facts.node_hours * facts.spec.workers)


def _startup(facts: Facts) -> Seconds:
    """Seconds from the first ready gang to its first step."""
    first = next((attempt for attempt in facts.attempts if attempt.work and attempt.all_ready), None)
    return max(0.0, first.work[0].start - first.all_ready[0].start) if first else 0.0


def _ending(facts: Facts) -> Seconds:
    """Seconds from the last step to the end of a program that finished: an evaluation, a last commit."""
    last = facts.attempts[-1]
    if facts.exit_code != 0 or not last.work or not last.all_ready:
        return 0.0
    return max(0.0, last.all_ready[-1].end - last.work[-1].end)


def _first_wait(facts: Facts) -> Seconds:
    """Seconds until the gang of the first attempt was ready; 0 if it never was."""
    return facts.attempts[0].all_ready[0].start if facts.attempts[0].all_ready else 0.0


def compared_costs(facts: Facts) -> ComparedCosts:
    """All amounts; empty without prices."""
    if facts.on_demand <= 0 or facts.unpriced:
        return ComparedCosts()
    paid = ComparedCost("paid", "paid", facts.spent)
    same_nodes = ComparedCost("on-demand-same-nodes", "the same nodes on demand", facts.on_demand)
    run = measured(facts)
    if run is None:
        return ComparedCosts((paid, same_nodes))
    scenario = run.scenario
    formulas = [
        ComparedCost(accounting.value, name, estimate(scenario, accounting).cost * run.price)
        for accounting, name in _READINGS.items()
    ]
    by_commits = uninterrupted_usd(facts.spec, facts.state)  # The figure of status, the live view and the controller.
    cost = scenario.hours * run.price if by_commits is None else by_commits
    uninterrupted = ComparedCost(ON_DEMAND, "on-demand, uninterrupted", cost)
    closed = ComparedCost("on-demand-formula", "formula: on-demand, T × price", scenario.hours * run.price)
    note = (
        f"The closed formulas use the measured values of this run: T = {span(scenario.hours * HOUR)}, "
        f"α = {percent(scenario.spot_fraction)}, M = {scenario.max_failures}, Δt = {span(scenario.overhead * HOUR)}, "
        f"spot at {percent(1 - scenario.spot_discount)} of the on-demand price. They charge every hour of the run; "
        "the paid cost includes only the hours in which nodes were held."
    )
    return ComparedCosts((paid, *formulas, closed, uninterrupted, same_nodes), note)
