"""Auxiliary pods, which are not on the tier: their losses, their starts and their cost."""

from __future__ import annotations

import pytest

from spotladder.core.model import Exit, FailureUnit, PodPhase, PodRole, PodSeen, Price, Progress, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, attempt, head, spec, tier, worker


def data(uid: str = "d-0", phase: PodPhase = PodPhase.RUNNING, cause: Cause = Cause.UNKNOWN) -> PodSeen:
    return PodSeen(uid, PodRole.AUXILIARY, phase, ready=phase is PodPhase.RUNNING, cause=cause, group="data")


GANG = (head(), worker("w1-0"), worker("w1-1"))


@pytest.mark.parametrize("unit", list(FailureUnit))
@pytest.mark.parametrize("cause", [Cause.INTERRUPTION, Cause.NODE_LOST, Cause.UNKNOWN, Cause.APP_ERROR])
def test_lost_data_workers_are_recorded_and_do_not_exhaust_the_tier(unit: FailureUnit, cause: Cause) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b", 0), failure_unit=unit)).running()
    for index in range(5):
        job.see(attempt(1, *GANG, data(f"d-{index}", PodPhase.LOST, cause)), after=1)
        job.see(attempt(1, *GANG, data(f"d-{index + 1}")), after=1)
    assert job.state.tier == "spot-a"
    assert job.state.record("spot-a").failures == 0
    assert job.state.stage is Stage.RUNNING
    assert len(job.losses) == 5


def test_a_program_that_fails_after_the_loss_of_a_data_worker_runs_again() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b", 0))).running()
    lost = data(phase=PodPhase.LOST, cause=Cause.NODE_LOST)
    job.see(attempt(1, *GANG, lost, exit=Exit.FAILED, message="a data worker died"), after=1)
    assert job.reasons[-1] is Reason.INTERRUPTED
    assert job.state.record("spot-a").failures == 0


def test_data_workers_that_go_away_are_not_lost() -> None:
    job = SteppedJob(spec(tier("spot-a", 0))).running()
    job.see(attempt(1, *GANG, data()), after=1)
    job.see(attempt(1, *GANG), after=1)
    assert job.losses == []


def test_data_workers_that_an_autoscaler_removes_are_not_lost() -> None:
    job = SteppedJob(spec(tier("spot-a", 0))).running()
    job.see(attempt(1, *GANG, data()), after=1)
    job.see(attempt(1, *GANG, data(phase=PodPhase.LOST, cause=Cause.DELETED)), after=1)
    assert job.losses == []


@pytest.mark.parametrize(
    ("how", "expected"), [(Exit.SUCCEEDED, Reason.COMPLETED), (Exit.FAILED, Reason.APPLICATION_FAILED)]
)
@pytest.mark.parametrize("uses_library", [True, False])
def test_a_lost_data_worker_explains_no_end_hours_later(how: Exit, expected: Reason, uses_library: bool) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), attribution_window=60.0)).running()
    job.progress = Progress(attempt=1, start=0) if uses_library else Progress()
    job.see(attempt(1, *GANG, data(phase=PodPhase.LOST, cause=Cause.NODE_LOST)), after=1)
    job.see(attempt(1, *GANG, data("d-1")), after=5)
    ended = attempt(1, *GANG, data("d-1"), exit=how, message="ValueError")
    job.see(ended, after=7200)
    job.see(ended, after=60)
    assert job.state.reason is expected


def test_a_program_that_fails_soon_after_the_loss_of_a_data_worker_runs_again() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), attribution_window=60.0)).running()
    job.see(attempt(1, *GANG, data(phase=PodPhase.LOST, cause=Cause.NODE_LOST)), after=1)
    job.see(attempt(1, *GANG, data("d-1")), after=5)
    job.see(attempt(1, *GANG, data("d-1"), exit=Exit.FAILED, message="a data worker died"), after=30)
    assert job.reasons[-1] is Reason.INTERRUPTED


def test_data_workers_without_a_node_do_not_exhaust_the_tier_of_the_gang() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b", 0), stall_timeout=600.0, start_timeout=300.0))
    job.see()
    waiting = PodSeen("d-0", PodRole.AUXILIARY, PodPhase.PENDING, ready=False, unschedulable=True, group="data")
    for _ in range(8):
        job.see(attempt(1, *GANG, waiting, waits_for_all_workers=True), after=100)
    assert Reason.START_TIMEOUT in job.reasons
    assert job.state.tier == "spot-a"
    assert job.state.record("spot-a").exhausted_by is None
    assert job.state.record("spot-a").failures == 0


@pytest.mark.parametrize(("price", "expected"), [(0.5, 1.0), (None, 0.0)])
def test_data_workers_cost_the_price_of_their_own_capacity(price: float | None, expected: float) -> None:
    spot = tier("spot-a", 0, price=Price(2.0), auxiliary=(("data", price),))
    job = SteppedJob(spec(spot)).running()
    job.see(attempt(1, *GANG, data("d-0"), data("d-1")), after=1)
    assert job.state.heads_per_hour == expected
    assert job.state.nodes == 2
