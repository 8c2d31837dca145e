"""A job that learns its work and its overhead while it runs decides as one on a cluster does."""

from __future__ import annotations

from spotladder.core.model import CapacityType, JobSpec, Price, Tier
from spotladder.core.reasons import Reason
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.world.program import ProgramPlan
from spotladder.sim.world.zone import ZonePlan
from tests.sim.builders import trace

WORK = 600
LEAVES_AT = 300.0


def path(*, measured: bool) -> list[tuple[str, Reason]]:
    """Tiers and reasons of the attempts of a job whose deadline leaves too little time for spot capacity, which is lost
    at `LEAVES_AT`."""
    price = Price(1.0, 3.0)
    tiers = (
        Tier("spot", -1, 60.0, CapacityType.SPOT, price),
        Tier("on-demand", -1, 60.0, CapacityType.ON_DEMAND, Price(3.0, 3.0)),
    )
    spec = JobSpec(tiers, max_duration=WORK + 240.0, grace=20.0)
    zones = (
        ZonePlan("spot", trace((0.0, 1), (LEAVES_AT, 0)), price),
        ZonePlan("on-demand", None, Price(3.0, 3.0)),
    )
    program = ProgramPlan(WORK, restart=5.0, commit_interval=10.0, commit_time=1.0)
    scenario = Scenario(spec, program, zones, {tier.name: tier.name for tier in tiers}, measured=measured)
    found = simulate(scenario, "uniform-progress", 0)
    assert found.succeeded
    return [(one.move.tier, one.move.reason) for one in found.path if one.move.target == "Starting"]


def test_a_job_with_known_work_begins_on_the_tier_that_meets_its_deadline() -> None:
    assert path(measured=False) == [("on-demand", Reason.STARTED)]


def test_a_job_that_learns_its_work_begins_on_spot_and_leaves_it_when_it_is_lost() -> None:
    assert path(measured=True) == [("spot", Reason.STARTED), ("on-demand", Reason.FELL_BACK)]
