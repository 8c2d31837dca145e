"""provisionTimeout, recoveryTimeout, stallTimeout, grace, deadline and budget: what time alone brings about."""

from __future__ import annotations

import pytest

from spotladder.core.model import (
    Drain,
    Exit,
    Launch,
    OnInsufficientCapacity,
    PodPhase,
    PodSeen,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import HANDOVER_GRACE_PERIOD
from tests.core.builders import START, Job, attempt, head, lost, noticed, pending, priced, spec, tier, whole, worker


def waiting(number: int) -> tuple[object, ...]:
    return (attempt(number, head(), pending("w-0"), pending("w-1")),)


def test_nothing_running_for_provision_timeout_falls_back() -> None:
    job = Job(spec(tier("spot-a", -1, 60), tier("on-demand")))
    job.see()
    job.see(*waiting(1), after=59.9)
    assert job.state.stage is Stage.STARTING
    assert job.last.wake_at == pytest.approx(START + 60)
    job.see(*waiting(1), after=0.1)
    assert job.reasons[-1] is Reason.INSUFFICIENT_CAPACITY
    job.see(after=1)
    assert job.state.tier == "on-demand"


def test_provision_timeout_runs_again_from_the_moment_the_job_is_not_whole() -> None:
    job = Job(spec(tier("spot-a", -1, 60), tier("on-demand"), recovery_timeout=1e6)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=500)
    job.see(attempt(1, head(), pending("new"), worker("w1-1")), after=59)
    assert job.state.stage is Stage.RECOVERING
    job.see(attempt(1, head(), pending("new"), worker("w1-1")), after=1)
    assert job.reasons[-1] is Reason.INSUFFICIENT_CAPACITY


def test_while_capacity_is_missing_recovery_timeout_does_not_wake_the_decider() -> None:
    """It has no effect then: a decider that is woken by it would be woken every second."""
    job = Job(spec(tier("spot-a", -1, 600), tier("on-demand"), recovery_timeout=90)).running()
    job.see(attempt(1, head(), pending("new"), worker("w1-1")), after=10)
    job.see(attempt(1, head(), pending("new"), worker("w1-1")), after=100)
    assert job.state.stage is Stage.RECOVERING
    assert job.last.wake_at == job.state.waiting_since + 600


def test_becoming_whole_cancels_provision_timeout() -> None:
    job = Job(spec(tier("spot-a", -1, 60), tier("on-demand"))).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("new"), worker("w1-1")), after=30)
    job.see(attempt(1, head(), worker("new"), worker("w1-1")), after=40)
    assert (job.state.stage, job.state.waiting_since) == (Stage.RUNNING, None)


def test_provision_timeout_goes_on_over_a_new_attempt_on_the_same_tier() -> None:
    job = Job(spec(tier("spot-a", -1, 100), tier("on-demand"), recovery_timeout=30)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("w1-1")), after=30)
    assert job.reasons[-1] is Reason.RECOVERY_TIMEOUT
    job.see(after=1)
    assert job.see().actions == (Launch(2, "spot-a"),)
    job.see(attempt(2, head(), pending("w2-0")), after=69)
    assert job.reasons[-1] is Reason.INSUFFICIENT_CAPACITY


def test_recovery_timeout_starts_a_new_attempt_on_the_same_tier() -> None:
    job = Job(spec(tier("spot-a", 3), recovery_timeout=90)).running()
    hurt = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    job.see(hurt, after=1)
    job.see(hurt, after=89)
    assert job.state.stage is Stage.RECOVERING
    job.see(hurt, after=1)
    job.see(after=1)
    assert (job.state.tier, job.number, job.state.failures) == ("spot-a", 2, 1)


def test_a_new_attempt_is_no_remedy_for_missing_capacity() -> None:
    job = Job(spec(tier("spot-a", 3, 600), recovery_timeout=90)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), pending("new"), worker("w1-1")), after=300)
    assert job.state.stage is Stage.RECOVERING


def test_recovered_means_whole_and_moving() -> None:
    job = Job(spec(tier("spot-a", 3), recovery_timeout=90)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1"), moved_at=job.now), after=1)
    stuck = attempt(1, head(), worker("new"), worker("w1-1"), moved_at=job.now - 1)
    job.see(stuck, after=20)
    assert job.state.stage is Stage.RECOVERING
    job.see(attempt(1, head(), worker("new"), worker("w1-1"), moved_at=job.now + 5), after=10)
    assert job.state.stage is Stage.RUNNING


def test_unready_for_recovery_timeout_without_a_lost_pod_is_a_failure_too() -> None:
    job = Job(spec(tier("spot-a", 0), tier("on-demand"))).running()
    unready = attempt(1, head(), worker("w1-0", ready=False), worker("w1-1"))
    job.see(unready, after=1)
    job.see(unready, after=90)
    assert job.reasons[-1] is Reason.MAX_FAILURES_EXCEEDED


def test_whole_without_a_commit_for_stall_timeout_is_one_failure_and_a_new_attempt() -> None:
    job = Job(spec(tier("spot-a", 1), stall_timeout=600)).running()
    job.commit(10).see(whole(1), after=500)
    job.see(whole(1), after=599)
    assert job.state.stage is Stage.RUNNING
    job.see(whole(1), after=2)
    assert job.reasons[-1] is Reason.STALLED
    assert [loss.cause for loss in job.losses] == [Cause.STALLED]
    job.see(after=1)
    assert job.number == 2


def test_a_job_that_has_committed_its_last_step_does_not_stall() -> None:
    job = Job(spec(tier("spot-a", 1), stall_timeout=600)).running()
    job.commit(100, 100).see(whole(1), after=6000)
    assert job.state.stage is Stage.RUNNING


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_a_clock_of_the_jobs_machines_an_hour_off_does_not_make_it_stall(skew: float) -> None:
    job = Job(spec(tier("spot-a", 1), stall_timeout=600)).running()
    for step in range(1, 20):
        job.commit(step)
        job.progress = job.progress.__class__(step, 100, job.now + skew, 1)
        job.see(whole(1), after=300)
    assert job.state.stage is Stage.RUNNING


def test_a_drain_that_exceeds_grace_is_cut() -> None:
    job = Job(spec(tier("spot-a", 1), grace=90)).running()
    job.edit(suspend=True)
    decision = job.see(whole(1), after=1)
    assert decision.actions == (Drain(1, job.now + 90, Reason.SUSPEND_REQUESTED),)
    job.see(whole(1), after=89)
    assert job.state.stage is Stage.DRAINING
    job.see(whole(1), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.GRACE_EXCEEDED)


def test_a_notice_drains_within_the_notice_and_starts_again_on_the_same_tier() -> None:
    job = Job(spec(tier("spot-a", 1), grace=90)).running()
    ends_at = job.now + 31
    decision = job.see(attempt(1, head(), noticed("w1-0", ends_at), worker("w1-1")), after=1)
    assert decision.actions == (Drain(1, ends_at, Reason.EVICTION_NOTICE),)
    job.see(attempt(1, head(), noticed("w1-0", ends_at), worker("w1-1"), exit=Exit.INTERRUPTED), after=5)
    job.see(after=1)
    assert job.reasons[-4:] == [Reason.EVICTION_NOTICE, Reason.DRAINED, Reason.GONE, Reason.STARTED]
    assert (job.state.tier, job.state.failures) == ("spot-a", 1)


@pytest.mark.parametrize(
    ("began", "cause", "seconds"),
    [
        (None, Cause.INTERRUPTION, 30),  # nobody says when: the cloud's notice begins now
        (-9, Cause.UNKNOWN, 21),  # … or began while nobody looked
        (+60, Cause.INTERRUPTION, 30),  # by a clock that is ahead
        (None, Cause.CONSOLIDATED, 90),  # no cloud's doing
    ],
)
def test_a_notice_that_names_no_end_lasts_as_long_as_the_tiers_do(
    began: float | None, cause: Cause, seconds: float
) -> None:
    job = Job(spec(tier("spot-a", 1, notice=30.0), grace=90)).running()
    at = None if began is None else job.now + began
    pod = PodSeen("w1-0", noticed=True, noticed_at=at, cause=cause)
    assert job.see(attempt(1, head(), pod, worker("w1-1"))).actions == (
        Drain(1, job.now + seconds, Reason.EVICTION_NOTICE),
    )


def test_a_notice_to_a_job_that_is_not_whole_ends_the_attempt_at_once() -> None:
    job = Job(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), lost("w1-0"), noticed("w1-1")), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.EVICTION_NOTICE)


def test_when_nobody_is_left_to_commit_a_drain_ends() -> None:
    job = Job(spec(tier("spot-a", 5), grace=90)).running()
    job.see(attempt(1, head(), noticed("w1-0"), noticed("w1-1")), after=1)
    job.see(attempt(1, head(), lost("w1-0"), lost("w1-1")), after=1)
    assert job.reasons[-1] is Reason.DRAINED


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"deadline": START + 1000}, Reason.DEADLINE_EXCEEDED),
        ({"max_duration": 1000}, Reason.DEADLINE_EXCEEDED),
        ({"budget": 2.0}, Reason.BUDGET_EXCEEDED),
    ],
)
def test_a_limit_of_the_job_drains_and_fails_it(limits: dict[str, float], reason: Reason) -> None:
    job = Job(spec(priced("spot-a", 3.6, 3.6, max_failures=1), stall_timeout=1e9, **limits)).running()
    job.see(whole(1), after=980)
    assert job.state.stage is Stage.RUNNING
    job.see(whole(1), after=20)
    assert job.state.stage is Stage.DRAINING
    job.see(attempt(1, head(), exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, reason)


@pytest.mark.parametrize("price", [3.6, 0.36])
def test_the_decider_asks_to_be_woken_when_the_budget_ends(price: float) -> None:
    job = Job(spec(priced("spot-a", price, price, max_failures=1), budget=2.0, stall_timeout=1e9)).running()
    decision = job.see(whole(1))
    assert decision.wake_at == pytest.approx(job.now + (2.0 - job.state.spent_usd) / (2 * price / 3600))


def test_a_refusal_of_the_provisioner_falls_back_only_when_the_tier_asks_for_it() -> None:
    for mode, stage in ((OnInsufficientCapacity.WAIT, Stage.STARTING), (OnInsufficientCapacity.FALLBACK, Stage.ENDING)):
        job = Job(spec(tier("spot-a", 1, on_insufficient_capacity=mode), tier("on-demand")))
        job.see()
        job.see(attempt(1, head(), pending("w"), refused=True), after=1)
        assert job.state.stage is stage


def test_what_blocks_for_another_reason_than_capacity_burns_no_tier() -> None:
    job = Job(spec(tier("spot-a", 1, 60), tier("on-demand")))
    job.see()
    blocked = attempt(1, head(), pending("w", unschedulable=False), blocked="ImagePullBackOff: no such image")
    job.see(blocked, after=30)
    decision = job.see(blocked, after=3600)
    assert (job.state.stage, decision.reason) == (Stage.STARTING, Reason.BLOCKED)
    job.see(attempt(1, head(), pending("w")), after=59)
    assert job.state.stage is Stage.STARTING


def test_a_launch_that_is_refused_is_tried_again_and_burns_no_tier() -> None:
    job = Job(spec(tier("spot-a", 1, 60), tier("on-demand")))
    job.see()
    decision = job.see(after=3600, blocked="exceeded quota: team-a")
    assert (decision.actions, decision.reason) == ((Launch(1, "spot-a"),), Reason.BLOCKED)


def test_the_decider_always_asks_to_be_woken_while_something_is_pending() -> None:
    job = Job()
    assert job.see().wake_at is not None
    job.running(1)
    assert job.last.wake_at is not None
    job.see(attempt(1, head(PodPhase.LOST)), after=1)
    assert job.last.wake_at is not None
    assert job.last.wake_at <= job.now + HANDOVER_GRACE_PERIOD


def test_what_blocks_a_replacement_ends_no_attempt() -> None:
    job = Job(spec(tier("spot-a", 3), tier("on-demand"), recovery_timeout=60)).running()
    hurt = (head(), worker("w1-0"), lost("w1-1"), pending("w1-2", unschedulable=False))
    job.see(attempt(1, *hurt), after=1)
    assert job.state.stage is Stage.RECOVERING
    for _ in range(10):
        job.see(attempt(1, *hurt, blocked="exceeded quota: team-a"), after=600)
    assert (job.state.stage, job.number, job.state.failures) == (Stage.RECOVERING, 1, 1)
    job.see(attempt(1, *hurt), after=59)
    assert job.state.stage is Stage.RECOVERING
    job.see(attempt(1, *hurt), after=1)
    assert job.state.attempt is not None
    assert job.state.attempt.end_reason is Reason.RECOVERY_TIMEOUT
