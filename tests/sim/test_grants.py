"""The newest grants of the zones: what the jobs of a world learn from each other."""

from __future__ import annotations

from spotladder.core.model import Decision, JobState, Move, Stage
from spotladder.core.reasons import Reason
from spotladder.sim.world.grants import Grants
from spotladder.sim.world.market import START
from spotladder.sim.world.run import run
from tests.sim.builders import HOUR, market, runner, zone

TIERS = {"a": "zone-a", "b": "zone-b"}


def moved(reason: Reason) -> Decision:
    return Decision(JobState(), moves=(Move(Stage.STARTING, Stage.RUNNING, reason, 1, "a"),))


def test_a_job_that_gets_all_of_its_nodes_is_a_grant_of_its_zone() -> None:
    grants = Grants()
    assert grants.newest("zone-a") is None
    grants.record(JobState(), moved(Reason.ALL_READY), TIERS, 60.0)
    assert (grants.newest("zone-a"), grants.newest("zone-b")) == (60.0, None)


def test_a_refusal_ends_a_grant_until_the_next_one() -> None:
    grants = Grants()
    grants.record(JobState(), moved(Reason.ALL_READY), TIERS, 60.0)
    grants.record(JobState(), moved(Reason.INSUFFICIENT_CAPACITY), TIERS, 120.0)
    assert grants.newest("zone-a") is None
    grants.record(JobState(), moved(Reason.ALL_READY), TIERS, 180.0)
    assert grants.newest("zone-a") == 180.0


def test_a_job_observes_the_grants_of_the_other_jobs() -> None:
    here = market(zone("spot", (0.0, 1), (2 * HOUR, 0)))
    first, second = runner(here), runner(here)
    assert second.backend.observe().granted == {}
    seen: list[dict[str, float]] = []
    run(here, [first], HOUR / 2, lambda _market: seen.append(dict(second.backend.observe().granted)))
    assert seen[-1] == {"spot": START}
