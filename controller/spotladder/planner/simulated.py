"""Estimates a job by Monte Carlo: runs of the simulator, through the decisions of the controller.

Each run draws the capacity of every spot tier from its statistics or its recorded traces (`tier_capacity`). On-demand
and reserved nodes are never lost. A pool that is closed provides no new nodes.

A run is repeatable from its seed. Runs of two variants of a job with the same seed use the same random numbers, so that
few runs show the difference between the variants.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from statistics import fmean, quantiles, stdev

from spotladder.core.accounting.held_nodes import HOUR, stored_per_second
from spotladder.core.model import (
    CommitSize,
    ExtraCosts,
    Instant,
    JobSpec,
    JobState,
    PricePoint,
    Progress,
    Seconds,
)
from spotladder.errors import InvalidSpec
from spotladder.planner.parallel import spread
from spotladder.planner.plan import PlanInput, TierFacts, check_budget, longest, time_limit
from spotladder.planner.recording import Recording
from spotladder.planner.tier_capacity import MAX_LOSSES, beyond_record, comparable_record, drawn
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import Trace
from spotladder.sim.world.market import START
from spotladder.sim.world.program import NO_COMMIT, ProgramPlan
from spotladder.sim.world.run import SimulationOutcome
from spotladder.sim.world.zone import ZonePlan

EXTRA_COSTS = tuple(field.name for field in fields(ExtraCosts))

PERCENTS = (10, 50, 90, 99)

MAX_COMMITS = 100_000
"""Maximum number of commits of a simulated run."""

WITHOUT_PROGRESS = frozenset({"ordered", "on-demand"})
"""Policies that do not use the progress of the job, so that the runs need no decision after each commit."""

FOR_DEADLINES = frozenset({"greedy", "uniform-progress", "adaptive"})
"""Policies that use the progress only if the job has a deadline."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Values that the statistics of the tiers do not include, in seconds. `restart` is the time from ready workers to
    the first step, `ready_after` the time until a node that was requested is ready.
    `commit_size` is that of the files of a commit, None if unknown: commits then cost nothing."""

    restart: Seconds = 180.0
    commit_time: Seconds = 10.0
    ready_after: Seconds = 180.0
    commit_interval: Seconds = 300.0
    commit_size: CommitSize | None = None


@dataclass(frozen=True, slots=True)
class Distribution:
    """Mean and percentiles (by percent) of a figure over the runs. `values` has one value for each run, ascending."""

    mean: float
    at: Mapping[int, float]
    values: tuple[float, ...] = ()

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 for one run."""
        return stdev(self.values) / math.sqrt(len(self.values)) if len(self.values) > 1 else 0.0

    @classmethod
    def of(cls, values: Sequence[float]) -> Distribution:
        """The distribution of at least one value."""
        cuts = quantiles(values, n=100, method="inclusive") if len(values) > 1 else [values[0]] * 99
        return cls(fmean(values), {percent: cuts[percent - 1] for percent in PERCENTS}, tuple(sorted(values)))


@dataclass(frozen=True, slots=True)
class TierForecast:
    """One tier: the share of the runs that used it, the hours for which it held the workers of a run (the hours of all
    nodes, divided by the number of workers), what these cost in USD, the lost nodes, and the hours of work that were
    lost before they were committed."""

    name: str
    used: float
    hours: Distribution
    cost: Distribution
    losses: Distribution
    recomputed: Distribution


@dataclass(frozen=True, slots=True)
class Forecast:
    """The runs of one variant of a job. `cost` is in USD over all runs, `hours` until the end of the runs that
    succeeded, None without one. `success` is the share of the runs that succeeded, within the deadline if there is one;
    `success_range` is its 95 % confidence interval, in which the runs on a record count as no more than follow each
    other in it. `overhead` is the mean time from ready workers to the first step in hours, `waiting` the mean cost in
    USD of nodes of gangs that were not complete, and `extra` that of heads, storage and egress, both parts of
    `cost`."""

    runs: int
    success: float
    success_range: tuple[float, float]
    cost: Distribution
    hours: Distribution | None
    losses: Distribution
    recomputed: Distribution
    overhead: float
    waiting: float
    extra: ExtraCosts
    tiers: tuple[TierForecast, ...]

    @property
    def success_error(self) -> float:
        """The standard error of `success`."""
        return math.sqrt(self.success * (1 - self.success) / self.runs)

    def ends_within(self, share: float) -> float | None:
        """The hours within which this share of all runs ends with success; None if fewer succeed."""
        ends, least = () if self.hours is None else self.hours.values, math.ceil(share * self.runs)
        return ends[least - 1] if len(ends) >= least else None


def outcomes(
    given: PlanInput,
    assumptions: Assumptions,
    seeds: Iterable[int],
    done: Callable[[int], None] = lambda _runs: None,
    *,
    recording: Recording | None = None,
) -> list[SimulationOutcome]:
    """One run for each seed. `done` is called with the numbers of runs that have ended. Raises InvalidSpec like
    `simulator`, and StoreUnavailable if a run cannot be recorded."""
    return spread(simulator(given, assumptions, recording), list(seeds), done)


def simulator(
    given: PlanInput, assumptions: Assumptions, recording: Recording | None = None
) -> Callable[[int], SimulationOutcome]:
    """Makes, and records, the run of a seed. Raises InvalidSpec for a job that cannot be simulated: a deadline before
    the end of the work, a budget below its lowest price, or more than MAX_LOSSES losses or MAX_COMMITS commits."""
    spec, horizon = _relative(given)
    if assumptions.commit_size is None:
        spec = replace(spec, storage_per_gib_month=0.0)
    each_commit = recording is not None or spec.storage_per_gib_month > 0
    program = ProgramPlan(
        max(1, round(given.hours * HOUR)),
        assumptions.restart,
        assumptions.commit_interval,
        assumptions.commit_time,
        commits_wake=each_commit or looks_at_progress(given.policy, spec),
        quiet_zones=() if each_commit else _quiet_tiers(given),
        hands_over=bool(given.sizes),
        stands_by=spec.overlap is not None,
        sizes=given.sizes,
        commit_size=assumptions.commit_size or NO_COMMIT,
    )
    _check_commits(program)
    _check_losses(given, horizon)
    check_budget(spec, given.hours, [facts.tier.price.per_node_hour for facts in given.tiers])
    tiers = {tier.name: tier.name for tier in spec.tiers}

    def run(seed: int) -> SimulationOutcome:
        capacity = drawn(given.tiers, spec.workers, horizon, seed)
        zones = tuple(_zone(facts, trace, assumptions) for facts, trace in zip(given.tiers, capacity, strict=True))
        scenario = Scenario(spec, program, zones, tiers)
        if recording is None:
            return simulate(scenario, given.policy, seed)
        recorder = recording.of(given.policy, seed, tuple(facts.known for facts in given.tiers))
        outcome = simulate(scenario, given.policy, seed, recorder)
        recorder.close()
        return outcome

    if all(facts.never_open for facts in given.tiers if facts.spot):
        only = cache(lambda: run(0))  # The seed draws nothing but the capacity of spot tiers.
        return lambda _seed: only()
    return run


def looks_at_progress(policy: str, spec: JobSpec) -> bool:
    """Whether a commit may change the choice of the policy."""
    return policy not in WITHOUT_PROGRESS and not (policy in FOR_DEADLINES and spec.max_duration is None)


def _quiet_tiers(given: PlanInput) -> tuple[str, ...]:
    """The tiers on which a commit changes no choice of the policy. These policies stay on spot capacity until it
    is lost or the deadline requires the fallback. A commit only delays the time of that move, and the simulator decides
    again at the earlier time. On the fallback, progress may allow a return to spot capacity."""
    spot = tuple(facts.tier.name for facts in given.tiers if facts.spot)
    return spot if given.policy in FOR_DEADLINES and len(spot) < len(given.tiers) else ()


def _zone(facts: TierFacts, trace: Trace, assumptions: Assumptions) -> ZonePlan:
    """The tier with its capacity in a run."""
    ready_after = assumptions.ready_after if facts.known.ready_after is None else facts.known.ready_after
    notice = facts.tier.notice if facts.spot else 0.0
    return ZonePlan(facts.tier.name, trace, facts.tier.price, ready_after, notice=notice, closed=facts.known.closed)


def with_max_failures(given: PlanInput, limit: int) -> PlanInput:
    """The input with this value of maxFailures on all spot tiers."""
    tiers = tuple(
        replace(facts, tier=replace(facts.tier, max_failures=limit)) if facts.spot else facts for facts in given.tiers
    )
    return replace(given, spec=replace(given.spec, tiers=tuple(facts.tier for facts in tiers)), tiers=tiers)


def _relative(given: PlanInput) -> tuple[JobSpec, Seconds]:
    """The spec with its deadline as a duration and its recorded prices at times of the simulation, and how long a run
    may take. Raises InvalidSpec."""
    spec, shortest = given.spec, time_limit(given.spec, given.hours)
    now = spec.submitted_at
    tiers = tuple(replace(facts.tier, prices=_known(facts.tier.prices, now)) for facts in given.tiers)
    # The stall timer reads commits, which do not wake the controller here.
    found = replace(spec, tiers=tiers, deadline=None, max_duration=shortest, suspend=False, stall_timeout=1e9)
    return found, longest(given)


def _known(points: Sequence[PricePoint], began: Instant) -> tuple[PricePoint, ...]:
    """The prices that were recorded by the moment at which the simulated run began, at times of the simulation."""
    return tuple(PricePoint(START + point.since - began, point.usd) for point in points if point.since <= began)


def _check_commits(program: ProgramPlan) -> None:
    commits = program.work / program.commit_interval
    if commits > MAX_COMMITS:
        raise InvalidSpec(
            f"{commits:.0f} commits would be simulated (expected at most {MAX_COMMITS}): set a longer interval, or "
            "specify fewer --hours",
            path="spec.checkpoints.interval",
        )


def _check_losses(given: PlanInput, horizon: Seconds) -> None:
    for index, facts in enumerate(given.tiers):
        losses = (facts.known.evictions or 0.0) * given.spec.workers * min(horizon, 2 * given.hours * HOUR) / HOUR
        if facts.spot and losses > MAX_LOSSES:
            raise InvalidSpec(
                f"{losses:.0f} losses would be simulated (expected at most {MAX_LOSSES}): check that the eviction "
                "rate is per hour",
                path=f"spec.tiers[{index}]",
            )


def summed(given: PlanInput, found: Sequence[SimulationOutcome]) -> Forecast:
    """The forecast from at least one run."""
    succeeded = [one for one in found if one.succeeded]
    independent: float = len(found)
    if traced := [facts for facts in given.tiers if facts.traces]:
        comparable = comparable_record(traced, given.spec.workers)
        independent = min(independent, 1 / beyond_record(comparable, longest(given)))
    tiers = []
    for facts in given.tiers:
        hours = [one.node_hours.get(facts.tier.name, 0.0) for one in found]
        cost = Distribution.of([one.tier_usd.get(facts.tier.name, 0.0) for one in found])
        used = sum(used_hours > 0 for used_hours in hours) / len(hours)
        held = Distribution.of([used_hours / given.spec.workers for used_hours in hours])
        losses = Distribution.of([one.tier_evictions.get(facts.tier.name, 0) for one in found])
        recomputed = Distribution.of([one.tier_recomputed.get(facts.tier.name, 0.0) / HOUR for one in found])
        tiers.append(TierForecast(facts.tier.name, used, held, cost, losses, recomputed))
    return Forecast(
        runs=len(found),
        success=len(succeeded) / len(found),
        success_range=_wilson(independent * len(succeeded) / len(found), independent),
        cost=Distribution.of([one.cost for one in found]),
        hours=Distribution.of([one.finished / HOUR for one in succeeded]) if succeeded else None,
        losses=Distribution.of([one.evictions for one in found]),
        recomputed=Distribution.of([one.recomputed / HOUR for one in found]),
        overhead=fmean(one.overhead for one in found) / HOUR,
        waiting=fmean(one.waiting for one in found),
        extra=ExtraCosts(*(fmean(getattr(one.extra, name) for one in found) for name in EXTRA_COSTS)),
        tiers=tuple(tiers),
    )


def expected_uninterrupted_usd(given: PlanInput, assumptions: Assumptions) -> float | None:
    """USD of the work on demand without interruptions, with its head and its commits; None without an on-demand
    price, or without the price of a tier: then the cost of the runs lacks a part, and savings would be too high."""
    price, spec = given.on_demand_price, given.spec
    if price is None or not all(facts.tier.price.known for facts in given.tiers):
        return None
    lasting = [facts.tier for facts in given.tiers if not facts.spot] or [given.tiers[0].tier]
    usd = given.hours * (price + lasting[0].head_per_hour)
    if assumptions.commit_size is None:
        return usd
    saved = Progress(size=assumptions.commit_size)
    return usd + stored_per_second(JobState(progress=saved), spec) * given.hours * HOUR


def _wilson(hits: float, runs: float) -> tuple[float, float]:
    """The 95 % confidence interval of a share (E. B. Wilson, 1927)."""
    z2 = 1.96**2
    middle = (hits + z2 / 2) / (runs + z2)
    half = 1.96 * (hits * (runs - hits) / runs + z2 / 4) ** 0.5 / (runs + z2)
    return max(0.0, middle - half), min(1.0, middle + half)
