"""`oracle` in a comparison: the cheapest run of the same world for a buyer who knows its future."""

from __future__ import annotations

from collections.abc import Mapping

from spotladder.core.accounting import HOUR
from spotladder.core.model import Seconds
from spotladder.core.reasons import Reason
from spotladder.errors import InvalidSpec
from spotladder.sim.world.bound import BoundedJob, Schedule, cheapest
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.run import Sample, Segment, SimulationOutcome

ORACLE = "oracle"
"""Its name among the policies of a comparison. It is none of the policies of the controller, which has no foresight."""


def check(program: ProgramPlan, jobs: int) -> None:
    """Raises InvalidSpec for a comparison that the oracle does not cover."""
    uncovered = {
        "several jobs (--jobs)": jobs > 1,
        "elastic jobs (spec.elastic)": bool(program.sizes),
        "standby attempts (spec.overlap)": program.stands_by,
        "programs that continue without workers that leave (--surge)": program.hands_over and not program.sizes,
    }
    if found := [what for what, given in uncovered.items() if given]:
        raise InvalidSpec(f"oracle does not cover {' and '.join(found)}: compare without {ORACLE}", path="--policy")


def run(job: BoundedJob, tiers: Mapping[str, str]) -> SimulationOutcome:
    """The cheapest run that ends in time. If none does, a run that fails and costs nothing."""
    schedule = cheapest(job)
    if schedule is None:
        return _outcome(job, Schedule(0.0, ()), job.limit, tiers, Reason.DEADLINE_EXCEEDED)
    finished = min(job.limit, schedule.stretches[-1].stops_at + job.program.commit_time)
    return _outcome(job, schedule, finished, tiers, Reason.COMPLETED)


def _outcome(
    job: BoundedJob, schedule: Schedule, finished: Seconds, tiers: Mapping[str, str], reason: Reason
) -> SimulationOutcome:
    names = {zone: tier for tier, zone in reversed(list(tiers.items()))}
    plans = {zone.plan.name: zone.plan for zone in job.zones}
    segments, samples, work, usd = [], [Sample(0.0, 0.0, 0.0)], 0.0, 0.0
    hours = dict.fromkeys(tiers, 0.0)
    for one in schedule.stretches:
        tier, plan = names[one.zone], plans[one.zone]
        ends = min(finished, one.stops_at + job.program.commit_time)
        segments += [
            Segment(one.requests_at, one.trains_at, tier, trains=False),
            Segment(one.trains_at, ends, tier, trains=True),
        ]
        samples += [Sample(one.requests_at, work, usd), Sample(one.trains_at, work, usd)]
        work, usd = work + one.stops_at - one.trains_at, usd + one.usd
        samples.append(Sample(ends, work, usd))
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
        samples=tuple(samples),
        path=(),
        decisions=0,
    )
