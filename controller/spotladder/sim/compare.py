"""Runs policies on the same scenario, seed by seed, and summarizes the results."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache, partial
from random import Random
from statistics import fmean, quantiles

import numpy as np

from spotladder.core.accounting import HOUR
from spotladder.core.model import JobSpec, Seconds
from spotladder.core.policies import Policy
from spotladder.errors import InvalidSpec
from spotladder.policies import registry
from spotladder.sim import oracle, ray_sweep
from spotladder.sim.child_processes import pooled
from spotladder.sim.synthetic import SyntheticMarket, generate_zones
from spotladder.sim.trace import Floats, Trace
from spotladder.sim.world.backend import SimBackend
from spotladder.sim.world.bound import BoundedJob
from spotladder.sim.world.market import START, Market
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationOutcome, SimulationRun, run
from spotladder.sim.world.zone import ZonePlan


@dataclass(frozen=True, slots=True)
class ZoneSource:
    """A zone and the source of its traces: seed n uses trace n modulo the number of `traces`. Without traces the zone
    always has capacity, or has those of the synthetic market."""

    plan: ZonePlan
    traces: tuple[Trace, ...] = ()
    synthetic: SyntheticMarket | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A job and its world. `spec` has no deadline in absolute time; `tiers` maps its tiers to zones. `egress` is in USD
    per GiB by region; `atomic` and `probed` are those of `SimBackend`. `measured`: a job learns its work and the
    overhead of a start while it runs, as every real job does; otherwise it knows both from its start. `jobs` equal jobs
    share the capacity of the zones; they are submitted `interval` seconds apart. `assumptions` are sentences about what
    is assumed of the world."""

    spec: JobSpec
    program: ProgramPlan
    zones: tuple[ZoneSource, ...]
    tiers: Mapping[str, str]
    egress: Mapping[tuple[str, str], float] = field(default_factory=dict)
    atomic: bool = False
    probed: bool = False
    measured: bool = False
    jobs: int = 1
    interval: Seconds = 0.0
    assumptions: tuple[str, ...] = ()

    @property
    def start(self) -> Seconds:
        """Maximum time from available capacity to the first committed progress of an attempt."""
        waits = (source.plan.provision_delay + source.plan.boot for source in self.zones)
        return max(waits, default=0.0) + self.program.restart + self.program.commit_time

    @property
    def horizon(self) -> Seconds:
        """Maximum duration of a job: until the deadline, else ten times the work."""
        return self.spec.max_duration if self.spec.max_duration is not None else 10.0 * self.program.work

    @property
    def duration(self) -> Seconds:
        """Maximum duration of a run: until the end of its last job."""
        return (self.jobs - 1) * self.interval + self.horizon


@dataclass(frozen=True, slots=True)
class Summary:
    """Results of the runs of one policy, in USD, hours and counts for each job; means unless the name says otherwise.
    `outcomes` has those of the jobs of the first seed, then those of the second seed."""

    policy: str
    outcomes: tuple[SimulationOutcome, ...]

    def of_job(self, job: int, jobs: int) -> Summary:
        """The results of one of so many jobs."""
        return Summary(self.policy, self.outcomes[job::jobs])

    @property
    def succeeded(self) -> int:
        """Number of runs that ended with success."""
        return sum(outcome.succeeded for outcome in self.outcomes)

    @property
    def cost(self) -> float:
        """Mean cost in USD."""
        return fmean(outcome.cost for outcome in self.outcomes)

    @property
    def hours(self) -> float | None:
        """Hours until the end, of the runs that succeeded; None without one."""
        ends = [outcome.finished / HOUR for outcome in self.outcomes if outcome.succeeded]
        return fmean(ends) if ends else None

    @property
    def evictions(self) -> float:
        """Mean number of reclaimed nodes."""
        return fmean(outcome.evictions for outcome in self.outcomes)

    @property
    def recomputed(self) -> float:
        """Mean hours of repeated work."""
        return fmean(outcome.recomputed for outcome in self.outcomes) / HOUR

    @property
    def overhead(self) -> float:
        """Mean hours between ready workers and the first step."""
        return fmean(outcome.overhead for outcome in self.outcomes) / HOUR

    def cost_at(self, percent: int) -> float:
        """This percentile of the cost of the runs, in USD."""
        costs = sorted(outcome.cost for outcome in self.outcomes)
        return costs[0] if len(costs) == 1 else quantiles(costs, n=100, method="inclusive")[percent - 1]


def frontier(summaries: Sequence[Summary]) -> list[Summary]:
    """The Pareto front of the policies, by mean finish time. No other policy is at least as successful, as cheap and as
    fast as one of these, and better in one respect."""

    def figures(one: Summary) -> tuple[float, float, float]:
        return -one.succeeded, one.cost, math.inf if one.hours is None else one.hours

    def beaten(one: Summary) -> bool:
        own = figures(one)
        rivals = (figures(other) for other in summaries)
        return any(rival != own and all(a <= b for a, b in zip(rival, own, strict=True)) for rival in rivals)

    found = [one for one in summaries if one.hours is not None and not beaten(one)]
    return sorted(found, key=lambda one: one.hours or 0.0)


def compare(
    scenario: Scenario,
    policies: Sequence[str],
    seeds: int,
    done: Callable[[], None] = lambda: None,
    processes: int = 1,
    *,
    ray: str | None = None,
) -> list[Summary]:
    """Every policy on every seed. `processes` run in parallel, or the processors of the Ray cluster with this address;
    the result does not depend on them. `done` is called after each run. Raises InvalidSpec for an unknown policy, or
    traces that are too short, and EnvironmentFailure if the Ray cluster cannot be used."""
    for name in policies:
        check_policy(name, scenario)
    runs = [(name, seed) for name in policies for seed in range(seeds)]
    outcomes: list[SimulationOutcome] = []
    with closing(_outcomes(scenario, runs, processes, ray)) as results:
        for found in results:
            outcomes += found
            done()
    size = seeds * scenario.jobs
    return [Summary(name, tuple(outcomes[index * size : (index + 1) * size])) for index, name in enumerate(policies)]


def check_policy(name: str, scenario: Scenario) -> None:
    """Raises InvalidSpec for a policy that is not installed, and for the oracle if it does not cover the scenario."""
    if name == oracle.ORACLE:
        oracle.check(scenario.program, scenario.jobs)
    else:
        installed(name)


@cache
def installed(name: str) -> Policy:
    """The policy of that name, loaded once: the search for entry points takes longer than a run, and a policy keeps
    nothing between its choices. Raises InvalidSpec for an unknown one."""
    return registry.by_name(name)


Run = tuple[str, int]
"""A policy and a seed."""


Outcomes = Sequence[SimulationOutcome]
"""The outcome of each job of a run."""


def _simulated(scenario: Scenario, run: Run) -> Outcomes:
    return simulate_jobs(scenario, *run)


def _outcomes(
    scenario: Scenario, runs: Sequence[Run], processes: int, ray: str | None
) -> Generator[Outcomes, None, None]:
    """The outcomes in the order of the runs."""
    if ray is not None:
        yield from ray_sweep.spread(_simulated, scenario, runs, ray)
    elif processes == 1:
        yield from (_simulated(scenario, run) for run in runs)
    else:
        yield from pooled(partial(_simulated, scenario), runs, processes)


MOST_DRAWN = 20
"""Maximum number of jobs of each policy in a timeline."""


def lanes(summaries: Sequence[Summary], jobs: int) -> list[tuple[str, SimulationOutcome]]:
    """The rows of a timeline with their labels: for each policy its jobs with seed 0, the first one under its name."""
    return [
        (f"job {index}" if index else summary.policy, outcome)
        for summary in summaries
        for index, outcome in enumerate(summary.outcomes[: min(jobs, MOST_DRAWN)])
    ]


def simulate(scenario: Scenario, policy: str, seed: int) -> SimulationOutcome:
    """One run of a single job, as `simulate_jobs`."""
    return simulate_jobs(replace(scenario, jobs=1), policy, seed)[0]


def simulate_jobs(scenario: Scenario, policy: str, seed: int) -> Outcomes:
    """One run. The seed selects the traces, the position at which the run begins in them, and the nodes that are
    reclaimed: for one seed they are the same under every policy. Seed 0 begins at the start of the traces. At each
    moment the jobs decide, and request nodes, in the same order."""
    plans, start = _plans(scenario, seed)
    limit = scenario.duration + HOUR
    market = Market.of(plans, start=start, duration=limit, seed=seed)
    if policy == oracle.ORACLE:
        zones = [market.zones[name] for name in dict.fromkeys(scenario.tiers.values())]
        within = scenario.spec.max_duration if scenario.spec.max_duration is not None else limit
        job = BoundedJob(zones, scenario.spec.workers, scenario.program, within, scenario.egress)
        return [oracle.run(job, scenario.tiers)]
    spec = replace(scenario.spec, min_workers=min(scenario.program.sizes, default=None))
    if not scenario.measured:
        spec = replace(spec, work=float(scenario.program.work), overhead=scenario.start)
    backends = [
        SimBackend(
            market,
            scenario.spec.workers,
            scenario.program,
            scenario.tiers,
            scenario.egress,
            scenario.atomic,
            scenario.probed,
        )
        for _ in range(scenario.jobs)
    ]
    runners = [
        SimulationRun(replace(spec, submitted_at=START + begins_at), installed(policy), backend, begins_at)
        for backend, begins_at in zip(backends, (job * scenario.interval for job in range(scenario.jobs)), strict=True)
    ]
    return run(market, runners, limit)


def availability(scenario: Scenario, seeds: int, bins: int) -> dict[str, Floats]:
    """By zone with a trace or closed periods, shape (bins,): the share of the seeds for which the zone has capacity for
    all workers and is open, at equal steps over the duration."""
    moments = np.arange(bins) * scenario.duration / bins
    found: dict[str, Floats] = {}
    for seed in range(seeds):
        plans, start = _plans(scenario, seed)
        for plan in plans:
            if plan.trace is not None or plan.closed:
                has = np.ones(bins, dtype=np.bool_)
                if plan.trace is not None:
                    has = plan.trace.at(moments + start) >= scenario.spec.workers
                for begins, ends in plan.closed:
                    has &= (moments < begins) | (moments >= ends)
                found[plan.name] = found.get(plan.name, np.zeros(bins)) + has / seeds
    return found


def _plans(scenario: Scenario, seed: int) -> tuple[list[ZonePlan], Seconds]:
    """The zones with the traces of this seed, and where in them the run begins."""
    invented = _invented(scenario, seed)
    plans = [
        replace(source.plan, trace=invented.get(source.plan.name) or _drawn(source, scenario.duration, seed))
        for source in scenario.zones
    ]
    ends = [plan.trace.end for plan in plans if plan.trace is not None]
    room = min(ends, default=math.inf) - scenario.duration
    # Seeded on purpose: these numbers simulate a market and are no secret.
    return plans, Random(seed).uniform(0.0, room) if seed and 0 < room < math.inf else 0.0  # noqa: S311


def _invented(scenario: Scenario, seed: int) -> dict[str, Trace]:
    """The synthetic traces of this seed by zone. Zones with equal ticks are drawn together, so that they can correlate;
    the others have other random numbers."""
    markets: dict[Seconds, dict[str, SyntheticMarket]] = {}
    for source in scenario.zones:
        if source.synthetic is not None:
            markets.setdefault(source.synthetic.gap, {})[source.plan.name] = source.synthetic
    found: dict[str, Trace] = {}
    for index, (gap, zones) in enumerate(markets.items()):
        ticks = math.ceil(scenario.duration / gap)
        found.update(zip(zones, generate_zones(zones, ticks, [seed, index] if index else seed), strict=True))
    return found


def _drawn(source: ZoneSource, duration: Seconds, seed: int) -> Trace | None:
    """The recorded trace of this seed; None: always capacity. Raises InvalidSpec for one that is too short."""
    if not source.traces:
        return None
    trace = source.traces[seed % len(source.traces)]
    if trace.end < duration:
        raise InvalidSpec(
            f"lasts {trace.end / HOUR:.4g} h (expected {duration / HOUR:.4g} h or more, as long as the job may take): "
            "give a longer trace or an earlier --deadline",
            where=trace.source or trace.zone,
        )
    return trace
