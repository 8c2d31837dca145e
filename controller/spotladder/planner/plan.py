"""Estimates the cost of a job on its tiers with the closed formulas of `core.cost`.

The formulas need α, the share of the work on spot, and M, the number of failures. Both follow from the eviction rate
of each tier. A job of n workers on a tier where each node is lost λ times an hour has n·λ failures an hour, so on
average it stays on the tier for (maxFailures + 1) / (n·λ) hours, or until it is done. On-demand and reserved tiers
have no losses. The result is an expectation, not a simulation: the hours that failures add have no further failures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spotladder.core.accounting.cost import MAX_NUMBER, CostScenario, Estimate, estimate
from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import FOR_EVER, NOTHING_KNOWN, CapacityType, JobSpec, KnownCapacity, Seconds, Tier
from spotladder.errors import InvalidSpec

if TYPE_CHECKING:
    from spotladder.sim.trace import Trace


@dataclass(frozen=True, slots=True)
class TierFacts:
    """One tier of the job, and what is known about its capacity, the CapacityTier or pool of the name `capacity`. With
    recorded `traces` the simulated runs use these instead of the statistics; `until_now`: they end at the start of the
    job."""

    tier: Tier
    capacity: str
    known: KnownCapacity = NOTHING_KNOWN
    traces: tuple[Trace, ...] = ()
    until_now: bool = False

    @property
    def spot(self) -> bool:
        return self.tier.capacity_type is CapacityType.SPOT

    @property
    def rate_is_observed(self) -> bool:
        """Whether the loss rate is an estimate from node-hours of jobs or of traces, and not given."""
        return 0 < self.known.observed < math.inf

    @property
    def never_open(self) -> bool:
        """Whether the pool is closed at all times."""
        until = 0.0
        for begins, ends in sorted(self.known.closed):
            until = max(until, ends) if begins <= until else until
        return until == math.inf


@dataclass(frozen=True, slots=True)
class PlanInput:
    """The input of an estimate. `hours` is the duration on demand only, `overhead` the cost of a failure in hours, and
    `interval` the seconds between commits, None if commits are counted in steps. `commit_time` is the duration of a
    commit in seconds, 0 if unknown; `measured`: a run of the job measured it. `policy` is the name of the policy that
    chooses the tiers in simulated runs; the closed formulas describe `ordered`. `sizes` are those of an elastic
    job, which only the simulated runs know."""

    spec: JobSpec
    tiers: tuple[TierFacts, ...]
    hours: float
    overhead: float
    interval: Seconds | None = None
    commit_time: Seconds = 0.0
    measured: bool = False
    policy: str = "ordered"
    sizes: tuple[int, ...] = ()

    def uses(self, facts: TierFacts) -> bool:
        """Whether the job can ever train on this tier, by what is known about it."""
        least = min(self.sizes, default=self.spec.workers)
        ever = not facts.traces or any(trace.available(least).any() for trace in facts.traces)
        return ever and not facts.never_open and (facts.known.room is None or facts.known.room >= least)

    @property
    def on_demand_price(self) -> float | None:
        """USD per hour for all workers on demand; None if no tier has an on-demand price."""
        prices = (facts.tier.price.on_demand for facts in self.tiers if facts.tier.price.on_demand)
        price = next(prices, None)
        return None if price is None else price * self.spec.workers


@dataclass(frozen=True, slots=True)
class Expected:
    """The hours of work on each tier by name, the failures on spot, and the hours of work left after the last tier."""

    hours: Mapping[str, float]
    failures: float
    left: float


@dataclass(frozen=True, slots=True)
class Estimated:
    """The estimate of a job, with overhead that is paid on demand and on spot in proportion. `usd` is None without
    prices."""

    expected: Expected
    scenario: CostScenario
    cost: Estimate
    usd: float | None


def expect(given: PlanInput) -> Expected | None:
    """The expected hours and failures; None if the eviction rate of a spot tier is unknown."""
    left, failures, hours = given.hours, 0.0, dict[str, float]()
    for facts in given.tiers:
        if left <= 0:
            break
        if not given.uses(facts):
            continue
        stays = left
        if facts.spot:
            if facts.known.evictions is None:
                return None
            rate = facts.known.evictions * given.spec.workers
            if rate > 0 and facts.tier.max_failures != FOR_EVER:
                stays = min(left, (facts.tier.max_failures + 1) / rate)
            failures += stays * rate
        hours[facts.tier.name] = stays
        left -= stays
    return Expected(hours, failures, max(0.0, left))


def estimated(given: PlanInput) -> Estimated | None:
    """The estimate; None if `expect` returns None."""
    expected = expect(given)
    if expected is None:
        return None
    if expected.failures > MAX_NUMBER:
        what = f"the expected number of failures must be at most {MAX_NUMBER}, got {expected.failures:.0f}"
        raise InvalidSpec(f"{what}: check that the eviction rate is per hour")
    spot = {facts.tier.name: facts.tier for facts in given.tiers if facts.spot}
    on_spot = sum(hours for name, hours in expected.hours.items() if name in spot)
    scenario = CostScenario(
        hours=given.hours,
        spot_fraction=min(1.0, on_spot / given.hours),
        max_failures=round(expected.failures),
        overhead=given.overhead,
        spot_discount=_discount(spot, expected),
    )
    found, price = estimate(scenario), given.on_demand_price
    return Estimated(expected, scenario, found, None if price is None else found.cost * price)


def _discount(spot: Mapping[str, Tier], expected: Expected) -> float:
    """The discount of spot compared with on demand, weighted by hours; 0.9 without prices."""
    paid = on_demand = 0.0
    for name, hours in expected.hours.items():
        if name in spot and spot[name].price.known and spot[name].price.on_demand:
            paid += hours * spot[name].price.per_node_hour
            on_demand += hours * spot[name].price.on_demand
    return min(1.0, max(0.0, 1 - paid / on_demand)) if on_demand else 0.9


def first_lossy(given: PlanInput) -> TierFacts | None:
    """The first spot tier with a known loss rate above 0; None if the job has none."""
    return next((facts for facts in given.tiers if facts.spot and facts.known.evictions), None)


def between_failures(given: PlanInput) -> float:
    """Hours between two failures on the tier `first_lossy`; infinite if the job has none."""
    facts = first_lossy(given)
    return 1 / (facts.known.evictions * given.spec.workers) if facts is not None and facts.known.evictions else math.inf


def time_limit(spec: JobSpec, hours: float) -> Seconds | None:
    """The time that the job may take from its submission; None: without limit. Raises InvalidSpec for less than the
    work, of this number of hours."""
    limits = {}
    if spec.max_duration is not None:
        limits["spec.maxDuration"] = spec.max_duration
    if spec.deadline is not None:
        limits["spec.deadline"] = spec.deadline - spec.submitted_at
    for path, limit in limits.items():
        if limit < hours * HOUR:
            problem = "is in the past" if limit <= 0 else f"leaves {limit / HOUR:.4g} h"
            more = "later" if path == "spec.deadline" else "longer"
            remedy = f"set a {more} one, or specify fewer --hours"
            raise InvalidSpec(f"{problem} (expected at least the work, {hours:.10g} h): {remedy}", path=path)
    return min(limits.values(), default=None)


def longest(given: PlanInput) -> Seconds:
    """How long a simulated run may take: until the limit of the job, or ten times its work. Raises InvalidSpec."""
    limit = time_limit(given.spec, given.hours)
    return 10.0 * given.hours * HOUR if limit is None else limit


def check_budget(spec: JobSpec, hours: float, prices: Iterable[float]) -> None:
    """Raises InvalidSpec for a budget below the price of `hours` hours of work at the lowest of these prices.

    `prices` are in USD per node-hour.
    """
    least = min(prices) * spec.workers * hours
    if spec.budget is not None and spec.budget < least:
        raise InvalidSpec(
            f"expected ${least:.2f} or more (the work at the lowest price), got ${spec.budget:.2f}: raise it",
            path="spec.budget",
        )
