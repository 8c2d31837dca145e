"""What to expect of a job on its tiers, by the closed formulas of `core.cost`.

The formulas want α, the share of the work that spot does, and M, the failures. Both follow from how often a node of
each tier is lost: a job of n workers on a tier where each is lost λ times an hour fails n·λ times an hour, so it stays
there for (maxFailures + 1) / (n·λ) hours on average, or until it is done. Tiers that are not spot are taken to hold. It
is an expectation, not a simulation: the hours that failures themselves cost are exposed to no further ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from spotladder.core.cost import Accounting, Estimate, Scenario, estimate
from spotladder.core.model import FOR_EVER, CapacityType, JobSpec, Seconds, Tier
from spotladder.errors import InvalidSpec

CHOICES = (0, 1, 2, 3, 5, 8, 13)
"""Values of maxFailures that are compared with those of the job."""

MOST = 1_000_000
"""Hours, failures: more is a slip of the hand."""


@dataclass(frozen=True, slots=True)
class TierFacts:
    """One tier of the job, with what is known of its capacity. `evictions` are per node and hour, None: not known.
    `observed` is for how many node hours that was observed, `trouble` why the tier cannot be had just now, `room` how
    many nodes it has at most."""

    tier: Tier
    capacity: str
    evictions: float | None = None
    observed: float = 0.0
    trouble: str = ""
    room: int | None = None

    @property
    def spot(self) -> bool:
        return self.tier.capacity_type is CapacityType.SPOT


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `hours` is what the job takes on demand only, `overhead` what a failure costs, in hours;
    `interval` is the time between commits, None when it is counted in steps."""

    spec: JobSpec
    tiers: tuple[TierFacts, ...]
    hours: float
    overhead: float
    interval: Seconds | None = None

    @property
    def on_demand_price(self) -> float | None:
        """USD per hour for all workers on demand; None when no tier says."""
        prices = (facts.tier.price.on_demand for facts in self.tiers if facts.tier.price.on_demand)
        price = next(prices, None)
        return None if price is None else price * self.spec.workers


@dataclass(frozen=True, slots=True)
class Expected:
    """The hours of work on each tier, by its name; the failures on spot; the hours of work that no tier is left for."""

    hours: Mapping[str, float]
    failures: float
    left: float


@dataclass(frozen=True, slots=True)
class Choice:
    """What one choice of maxFailures comes to; None: as the job has it. `usd` is None without prices."""

    max_failures: int | None
    expected: Expected
    scenario: Scenario
    estimates: Mapping[Accounting, Estimate]
    usd: Mapping[Accounting, float] | None


def expect(question: Question) -> Expected | None:
    """Where the work is done, and how often it fails; None when the evictions of a spot tier are not known."""
    left, failures, hours = question.hours, 0.0, dict[str, float]()
    for facts in question.tiers:
        if left <= 0:
            break
        stays = left
        if facts.spot:
            if facts.evictions is None:
                return None
            rate = facts.evictions * question.spec.workers
            if rate > 0 and facts.tier.max_failures != FOR_EVER:
                stays = min(left, (facts.tier.max_failures + 1) / rate)
            failures += stays * rate
        hours[facts.tier.name] = stays
        left -= stays
    return Expected(hours, failures, max(0.0, left))


def choose(question: Question, max_failures: int | None = None) -> Choice | None:
    """What to expect with so many failures tolerated on each spot tier; None: not to be told, as `expect` says."""
    if max_failures is not None:
        tiers = tuple(
            replace(facts, tier=replace(facts.tier, max_failures=max_failures)) if facts.spot else facts
            for facts in question.tiers
        )
        question = replace(question, tiers=tiers)
    expected = expect(question)
    if expected is None:
        return None
    if expected.failures > MOST:
        told = f"{expected.failures:g} failures are to be expected, a plan is for {MOST:g} at most"
        raise InvalidSpec(f"{told}: is the rate per hour?")
    spot = {facts.tier.name: facts.tier for facts in question.tiers if facts.spot}
    on_spot = sum(hours for name, hours in expected.hours.items() if name in spot)
    scenario = Scenario(
        hours=question.hours,
        spot_fraction=min(1.0, on_spot / question.hours),
        max_failures=round(expected.failures),
        overhead=question.overhead,
        spot_discount=_discount(spot, expected),
    )
    estimates = {accounting: estimate(scenario, accounting) for accounting in Accounting}
    price = question.on_demand_price
    usd = None if price is None else {kind: found.cost * price for kind, found in estimates.items()}
    return Choice(max_failures, expected, scenario, estimates, usd)


def choices(question: Question) -> list[Choice]:
    """The job as it is, and the choices of maxFailures beside it, as far as they differ; none when nothing can be
    expected."""
    found = [choose(question, number) for number in (None, *CHOICES)]
    told: list[Choice] = []
    for choice in found:
        if choice is not None and (len(told) < 2 or choice.expected != told[-1].expected):
            told.append(choice)
    return told


def cheapest(found: list[Choice], accounting: Accounting) -> Choice | None:
    """The choice that costs least and gets the work done; the fewest failures among equals."""
    done = [choice for choice in found if choice.max_failures is not None and choice.expected.left == 0]
    return min(done, key=lambda choice: round(choice.estimates[accounting].cost, 9), default=None)


def _discount(spot: Mapping[str, Tier], expected: Expected) -> float:
    """How much less spot costs than on demand, over the hours spent there; the usual nine tenths without prices."""
    paid = on_demand = 0.0
    for name, hours in expected.hours.items():
        if name in spot and spot[name].price.known and spot[name].price.on_demand:
            paid += hours * spot[name].price.per_node_hour
            on_demand += hours * spot[name].price.on_demand
    return min(1.0, max(0.0, 1 - paid / on_demand)) if on_demand else 0.9


def between_failures(question: Question) -> float:
    """Hours between two failures on the first spot tier; infinite when it has none, or nobody knows."""
    rates = [facts.evictions * question.spec.workers for facts in question.tiers if facts.spot and facts.evictions]
    return 1 / rates[0] if rates else math.inf
