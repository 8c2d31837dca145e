"""The cheapest run of a simulated scenario for a buyer who knows its future: the bound for the cost of every policy.

It covers no elastic jobs, no standby attempts and no programs that continue without workers that leave, and ignores
maxFailures, provisionTimeout and the budget.
"""

from __future__ import annotations

from collections.abc import Mapping

from spotladder.core.accounting import HOUR
from spotladder.core.model import Seconds
from spotladder.core.reasons import Reason
from spotladder.sim.scenario import Scenario
from spotladder.sim.world.run import Segment, SimulationOutcome
from tests.bench.bound import BoundedJob, Schedule, cheapest

ORACLE = "oracle"
"""Its name beside those of policies."""


def run(scenario: Scenario, seed: int = 0) -> SimulationOutcome:
    """The cheapest run that ends in time. If none does, a run that fails and costs nothing."""
    market = scenario.market(seed)
    zones = [market.zones[name] for name in dict.fromkeys(scenario.tiers.values())]
    within = scenario.limit if scenario.spec.max_duration is None else scenario.spec.max_duration
    job = BoundedJob(zones, scenario.spec.workers, scenario.program, within, scenario.egress)
    schedule = cheapest(job)
    if schedule is None:
        return _outcome(job, Schedule(0.0, ()), job.limit, scenario.tiers, Reason.DEADLINE_EXCEEDED)
    finished = min(job.limit, schedule.stretches[-1].stops_at + job.program.commit_time)
    return _outcome(job, schedule, finished, scenario.tiers, Reason.COMPLETED)


def _outcome(
    job: BoundedJob, schedule: Schedule, finished: Seconds, tiers: Mapping[str, str], reason: Reason
) -> SimulationOutcome:
    names = {zone: tier for tier, zone in reversed(list(tiers.items()))}
    plans = {zone.plan.name: zone.plan for zone in job.zones}
    segments, hours = [], dict.fromkeys(tiers, 0.0)
    for one in schedule.stretches:
        tier, plan = names[one.zone], plans[one.zone]
        ends = min(finished, one.stops_at + job.program.commit_time)
        segments += [
            Segment(one.requests_at, one.trains_at, tier, trains=False),
            Segment(one.trains_at, ends, tier, trains=True),
        ]
        billed = plan.boot + job.program.restart + one.stops_at - one.trains_at + job.program.commit_time
        hours[tier] += job.workers * billed / HOUR
    return SimulationOutcome(
        succeeded=reason is Reason.COMPLETED,
        reason=reason,
        finished=finished,
        cost=schedule.cost,
        egress=sum(one.egress for one in schedule.stretches),
        evictions=0,
        attempts=len(schedule.stretches),
        recomputed=0.0,
        overhead=job.program.restart * len(schedule.stretches),
        waiting=0.0,
        node_hours=hours,
        segments=tuple(segments),
        path=(),
        decisions=0,
    )
