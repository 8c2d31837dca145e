"""When a job is said to risk its deadline, in simulated runs.

The rule of `core.deadline_risk` lies between two percentiles of the plan's own distribution. The condition that 10 % of
the runs with as much left at that moment end late is true earlier, but also for nearly every run that ends in time, if
the deadline is the plan's 90th percentile: 136 of 136 with these runs of six hours. That of 50 % is true for 1 of 14
runs that end late. A leader that does not simulate loses nothing.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.facts.deadline_risk import deadline_risk
from spotladder.core.model import CapacityType, Decision, JobSpec, KnownCapacity, Observation, Price, Seconds, Tier
from spotladder.planner.plan import TierFacts
from spotladder.planner.tier_capacity import drawn
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.world.market import START
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import SimulationRun
from spotladder.sim.world.zone import ZonePlan

RUNS = 60
TIER = Tier("spot", -1, 1800.0, CapacityType.SPOT, Price(0.4, 1.4))
SPEC = JobSpec(tiers=(TIER,), workers=2, recovery_timeout=60.0, stall_timeout=1e9)
PROGRAM = ProgramPlan(3 * 3600, restart=180.0, commit_interval=600.0, commit_time=10.0, commits_wake=True)
SPOT = TierFacts(TIER, "spot", KnownCapacity(evictions=0.4, observed=1000.0))


def run_of(seed: int) -> tuple[Seconds, list[tuple[Seconds, Seconds]]]:
    """The end of a run without a deadline, and at each decision the time and the time until the job could not afford
    another start, both since the start: a deadline before their sum is at risk."""
    looks: list[tuple[Seconds, Seconds]] = []

    def watch(run: SimulationRun, decision: Decision, _seen: Observation) -> None:
        risk = deadline_risk(replace(run.spec, max_duration=0.0), decision.state)
        if risk is not None:
            looks.append((decision.state.clock - START, -risk.slack))

    (capacity,) = drawn((SPOT,), SPEC.workers, 60 * HOUR, seed)
    zone = ZonePlan("spot", capacity, TIER.price, 180.0, notice=TIER.notice)
    return simulate(Scenario(SPEC, PROGRAM, (zone,), {"spot": "spot"}), "ordered", seed, watch).finished, looks


def test_a_job_that_ends_late_was_told_before_and_few_others_were() -> None:
    runs = [run_of(seed) for seed in range(RUNS)]
    deadline = sorted(end for end, _ in runs)[round(0.9 * RUNS)]
    told = [next((at for at, needed in looks if needed > deadline), None) for _, looks in runs]
    late = [deadline - at for (end, _), at in zip(runs, told, strict=True) if end > deadline and at is not None]
    assert len(late) == sum(end > deadline for end, _ in runs) >= 5
    assert min(late) > 600.0
    assert sum(at is not None for at in told) - len(late) <= RUNS / 10
