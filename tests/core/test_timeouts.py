"""provisionTimeout, recoveryTimeout, stallTimeout, grace, deadline and budget: transitions caused by time alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.acting import ACTION_RETRY_INTERVAL
from spotladder.core.model import (
    AttemptSeen,
    Drain,
    Exhausted,
    Exit,
    Launch,
    OnInsufficientCapacity,
    PodSeen,
    Stage,
)
from spotladder.core.policies import Policy
from spotladder.core.policies.on_demand import OnDemand
from spotladder.core.policies.ordered import Ordered
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import (
    START,
    SteppedJob,
    all_ready,
    attempt,
    head,
    lost,
    noticed,
    pending,
    priced,
    refused,
    spec,
    tier,
    worker,
)


def waiting(number: int) -> AttemptSeen:
    return attempt(number, head(), pending("w-0"), pending("w-1"))


def test_an_attempt_not_ready_within_provision_timeout_falls_back() -> None:
    job = SteppedJob(spec(tier("spot-a", -1, 60), tier("on-demand")))
    job.see()
    job.see(waiting(1), after=59.9)
    assert job.state.stage is Stage.STARTING
    assert job.last.wake_at == pytest.approx(START + 60)
    job.see(waiting(1), after=0.1)
    assert job.end_reason is Reason.INSUFFICIENT_CAPACITY
    job.see(after=1)
    assert job.state.tier == "on-demand"


def test_provision_timeout_continues_across_attempts_on_the_same_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", -1, 100), tier("on-demand"), recovery_timeout=30)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("w1-1")), after=30)
    assert job.reasons[-1] is Reason.RECOVERY_TIMEOUT
    job.see(after=1)
    assert job.see().actions == (Launch(2, "spot-a"),)
    job.see(attempt(2, head(), pending("w2-0")), after=70)
    assert job.end_reason is Reason.INSUFFICIENT_CAPACITY


def test_recovery_timeout_starts_a_new_attempt_on_the_same_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 3), recovery_timeout=90)).running()
    hurt = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    job.see(hurt, after=1)
    job.see(hurt, after=89)
    assert job.state.stage is Stage.RECOVERING
    job.see(hurt, after=1)
    job.see(after=1)
    assert (job.state.tier, job.number, job.state.failures) == ("spot-a", 2, 1)


def test_a_job_has_recovered_when_all_workers_are_ready_and_progress_resumes() -> None:
    job = SteppedJob(spec(tier("spot-a", 3), recovery_timeout=90)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1"), moved_at=job.now), after=1)
    stuck = attempt(1, head(), worker("new"), worker("w1-1"), moved_at=job.now - 1)
    job.see(stuck, after=20)
    assert job.state.stage is Stage.RECOVERING
    job.see(attempt(1, head(), worker("new"), worker("w1-1"), moved_at=job.now + 5), after=10)
    assert job.state.stage is Stage.RUNNING


def committing(job: SteppedJob, step: int) -> None:
    job.progress = replace(job.progress, step=step, attempt=job.number, committed_at=job.now)


def test_commits_outweigh_a_pod_that_is_not_ready() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"))).running()
    unready = attempt(1, head(), worker("w1-0", ready=False), worker("w1-1"))
    job.see(unready, after=1)
    assert job.state.stage is Stage.RECOVERING
    for step in range(1, 10):
        job.now += 60
        committing(job, step)
        job.see(unready)
        assert job.state.stage is Stage.RUNNING
    assert [move.reason for move in job.moves].count(Reason.RECOVERING) == 1
    assert job.state.failures == 0
    assert job.last.wake_at == job.now + 90, "then the commits no longer outweigh it"
    job.see(unready, after=90)
    assert job.state.stage is Stage.RECOVERING
    job.see(unready, after=90)
    assert job.end_reason is Reason.MAX_FAILURES_EXCEEDED


@pytest.mark.parametrize("missing", [lost("w1-0"), pending("new"), replace(worker("w1-0"), suspect=True, ready=False)])
def test_commits_do_not_outweigh_a_pod_that_does_not_run(missing: PodSeen) -> None:
    job = SteppedJob(spec(tier("spot-a", 3), recovery_timeout=90)).running()
    hurt = attempt(1, head(), missing, worker("w1-1"))
    job.see(hurt, after=1)
    committing(job, 5)
    job.see(hurt, after=30)
    assert job.state.stage is Stage.RECOVERING


def test_a_commit_from_before_the_loss_that_is_read_later_does_not_end_the_recovery() -> None:
    job = SteppedJob(spec(tier("spot-a", 3), recovery_timeout=90)).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=10)
    job.progress = replace(job.progress, step=5, attempt=1, committed_at=job.now - 2)
    job.see(attempt(1, head(), worker("new", ready=False), worker("w1-1")), after=5)
    assert job.state.stage is Stage.RECOVERING


def test_an_attempt_that_commits_has_started() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"))).planned()
    unready = attempt(1, head(), worker("w1-0", ready=False), worker("w1-1"))
    job.see(unready, after=1)
    assert job.state.stage is Stage.STARTING
    job.now += 60
    committing(job, 5)
    job.see(unready)
    assert job.state.stage is Stage.RUNNING


def test_no_commit_for_stall_timeout_is_one_failure_and_starts_a_new_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 1), stall_timeout=600)).running()
    job.commit(10).see(all_ready(1), after=500)
    job.see(all_ready(1), after=599)
    assert job.state.stage is Stage.RUNNING
    job.see(all_ready(1), after=2)
    assert job.reasons[-1] is Reason.STALLED
    assert [loss.cause for loss in job.losses] == [Cause.STALLED]
    job.see(after=1)
    assert job.number == 2


HUNG = "no step for 60 s (a step takes 1 s)"


def test_a_program_that_hangs_is_one_failure_and_starts_a_new_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 1), stall_timeout=600)).running()
    job.see(all_ready(1, hung=HUNG), after=70)
    assert (job.reasons[-1], job.state.message) == (Reason.STALLED, f"the program hangs: {HUNG}")
    assert [loss.cause for loss in job.losses] == [Cause.STALLED]
    job.see(all_ready(1, hung=HUNG), after=1)
    assert job.state.failures == 1
    assert job.see(after=1).actions == (Launch(2, "spot-a", hangs=1),)


def test_the_next_attempt_gets_the_number_of_hangs() -> None:
    job = SteppedJob(spec(tier("spot-a", 1), tier("on-demand", -1))).running()
    for number in (1, 2):
        job.see(all_ready(number, hung=HUNG), after=70)
        job.see(after=1)
        job.see(attempt(number + 1))
        job.see(all_ready(number + 1), after=10)
    assert (job.state.tier, job.state.hangs) == ("on-demand", 2), "a tier allows as many hangs as other failures"


@pytest.mark.parametrize(
    "pods",
    [
        pytest.param([worker("w1-0"), lost("w1-1")], id="a worker is lost"),
        pytest.param([worker("w1-0"), worker("w1-1", ready=False)], id="a worker is not ready"),
    ],
)
def test_a_program_that_waits_for_a_lost_worker_does_not_hang(pods: list[PodSeen]) -> None:
    job = SteppedJob(spec(tier("spot-a", 1))).running()
    job.see(attempt(1, head(), *pods, hung=HUNG), after=70)
    assert (job.state.stage, job.state.hangs) == (Stage.RECOVERING, 0)


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_clock_skew_between_controller_and_job_does_not_cause_a_stall(skew: float) -> None:
    job = SteppedJob(spec(tier("spot-a", 1), stall_timeout=600)).running()
    for step in range(1, 20):
        job.commit(step)
        job.progress = job.progress.__class__(step, 100, job.now + skew, 1)
        job.see(all_ready(1), after=300)
    assert job.state.stage is Stage.RUNNING


def test_a_notice_drains_the_attempt_by_its_end_and_restarts_on_the_same_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 1), grace=90)).running()
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
        (None, Cause.INTERRUPTION, 30),  # no start time: the cloud's notice begins now
        (-9, Cause.UNKNOWN, 21),  # the notice began before this reconcile
        (+60, Cause.INTERRUPTION, 30),  # the clock that set the start time is ahead
        (None, Cause.CONSOLIDATED, 90),  # not caused by the cloud
    ],
)
def test_a_notice_without_an_end_has_the_notice_period_of_the_tier(
    began: float | None, cause: Cause, seconds: float
) -> None:
    job = SteppedJob(spec(tier("spot-a", 1, notice=30.0), grace=90)).running()
    at = None if began is None else job.now + began
    pod = PodSeen("w1-0", noticed=True, noticed_at=at, cause=cause)
    assert job.see(attempt(1, head(), pod, worker("w1-1"))).actions == (
        Drain(1, job.now + seconds, Reason.EVICTION_NOTICE),
    )


def test_a_notice_while_workers_are_missing_ends_the_attempt_at_once() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), lost("w1-0"), noticed("w1-1")), after=1)
    assert (job.state.stage, job.reasons[-1]) == (Stage.ENDING, Reason.EVICTION_NOTICE)


def test_a_drain_ends_when_no_worker_is_left() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), grace=90)).running()
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
def test_a_job_that_reaches_its_deadline_or_budget_is_drained_and_fails(
    limits: dict[str, float], reason: Reason
) -> None:
    job = SteppedJob(spec(priced("spot-a", 3.6, 3.6, max_failures=1), stall_timeout=1e9, **limits)).running()
    job.see(all_ready(1), after=980)
    assert job.state.stage is Stage.RUNNING
    job.see(all_ready(1), after=20)
    assert job.state.stage is Stage.DRAINING
    job.see(attempt(1, head(), exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, reason)


@pytest.mark.parametrize("price", [3.6, 0.36])
def test_the_job_is_requeued_for_the_time_when_its_budget_ends(price: float) -> None:
    job = SteppedJob(spec(priced("spot-a", price, price, max_failures=1), budget=2.0, stall_timeout=1e9)).running()
    decision = job.see(all_ready(1))
    assert decision.wake_at == pytest.approx(job.now + (2.0 - job.state.spent_usd) / (2 * price / 3600))


def test_a_refusal_of_the_provisioner_falls_back_only_with_on_insufficient_capacity_fallback() -> None:
    for mode, name in ((OnInsufficientCapacity.WAIT, "spot-a"), (OnInsufficientCapacity.FALLBACK, "on-demand")):
        job = SteppedJob(spec(tier("spot-a", 1, on_insufficient_capacity=mode), tier("on-demand")))
        job.see()
        job.see(attempt(1, head(), refused("w")), after=1)
        assert job.state.tier == name


def test_a_blocked_replacement_pod_does_not_end_the_attempt() -> None:
    job = SteppedJob(spec(tier("spot-a", 3), tier("on-demand"), recovery_timeout=60)).running()
    hurt = (head(), worker("w1-0"), lost("w1-1"), pending("w1-2", unschedulable=False))
    job.see(attempt(1, *hurt), after=1)
    assert job.state.stage is Stage.RECOVERING
    for _ in range(10):
        job.see(attempt(1, *hurt, blocked="exceeded quota: team-a"), after=600)
    assert (job.state.stage, job.number, job.state.failures) == (Stage.RECOVERING, 1, 1)
    job.see(attempt(1, *hurt), after=600)
    job.see(attempt(1, *hurt), after=59)
    assert job.state.stage is Stage.RECOVERING
    job.see(attempt(1, *hurt), after=1)
    assert job.attempt.ending.reason is Reason.RECOVERY_TIMEOUT


def test_a_timer_that_expired_without_effect_is_checked_rarely() -> None:
    """Ten thousand jobs may wait for their only cluster."""
    job = SteppedJob(spec(tier("spot-a", 0, 60))).planned()
    job.see(after=60, unavailable={"spot-a": "the cluster does not answer"})
    assert (job.state.stage, job.last.wake_at) == (Stage.STARTING, job.now + ACTION_RETRY_INTERVAL)


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        (OnDemand(), ("on-demand",)),
        (OnDemand(), ("on-demand-a", "on-demand-b")),
        (Ordered(), ("spot-a",)),
        (Ordered(), ("spot-a", "on-demand")),
    ],
    ids=["one tier of a policy", "tiers of a policy", "restart on the tier", "restart on the first tier"],
)
def test_a_refusal_is_not_answered_with_an_attempt_that_is_refused_too(policy: Policy, names: tuple[str, ...]) -> None:
    """Regression: each refusal was followed at once by another attempt, without end."""
    refuses = OnInsufficientCapacity.FALLBACK
    tiers = (tier(name, 0, 600, on_insufficient_capacity=refuses) for name in names)
    job = SteppedJob(spec(*tiers, exhausted=Exhausted.RESTART), policy)
    job.see()
    for _ in range(40):
        job.see(attempt(job.state.number, head(), refused("w-0"), refused("w-1")), after=1)
    assert (job.state.stage, job.number) == (Stage.STARTING, len(names))
    job.see(all_ready(job.number), after=1)
    assert job.state.stage is Stage.RUNNING


def test_a_refused_tier_is_left_at_once_for_another_one_that_the_policy_prefers() -> None:
    refuses = OnInsufficientCapacity.FALLBACK
    names = ("on-demand-a", "on-demand-b")
    job = SteppedJob(spec(*(tier(name, 0, 600, on_insufficient_capacity=refuses) for name in names)), OnDemand())
    job.see()
    job.see(attempt(1, head(), refused("w-0"), refused("w-1")), after=10)
    job.see(after=1)
    assert job.state.tier == "on-demand-b"
