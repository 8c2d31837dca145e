"""An attempt in an admission queue: waiting for quota counts no failure, and a preemption is one eviction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import (
    AttemptSeen,
    Exhausted,
    Exit,
    FailureUnit,
    OnInsufficientCapacity,
    PodPhase,
    PodRole,
    PodSeen,
    QueueEviction,
    QueueSeen,
    Stage,
)
from spotladder.core.policies import Policy
from spotladder.core.policies.greedy import Greedy
from spotladder.core.policies.ordered import Ordered
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker

SAID = "insufficient unused quota for cpu in flavor spot, 1 more needed"
HELD = QueueSeen("team", held=True, message=SAID)
DAY = 86_400.0


def waiting(**more: Any) -> SteppedJob:
    """A job whose first attempt is held by the queue."""
    job = SteppedJob(spec(tier("spot-a", 0, 300.0, **more), tier("on-demand", -1)))
    job.see()
    job.see(held(1), after=1)
    return job


def held(number: int, *pods: Any, queue: QueueSeen = HELD, **more: Any) -> AttemptSeen:
    return attempt(number, *pods, queue=queue, **more)


def evicted(why: QueueEviction, *, held: bool = True) -> QueueSeen:
    return QueueSeen("team", held=held, message="Preempted to accommodate a workload", eviction=why)


def test_an_attempt_held_by_its_queue_is_not_lost_and_exhausts_no_tier() -> None:
    job = waiting()
    for _ in range(30):
        job.see(held(1), after=DAY)
    assert (job.state.stage, job.state.failures, job.losses) == (Stage.STARTING, 0, [])
    assert job.state.record("spot-a").exhausted_by is None
    assert job.impeded.reason is Reason.WAITING_FOR_QUOTA
    explanation = job.explanation
    assert (explanation.message, explanation.until) == (SAID, None)


def test_provision_timeout_starts_when_the_queue_admits_the_attempt() -> None:
    job = waiting()
    job.see(held(1), after=DAY)
    admitted = QueueSeen("team")
    job.see(held(1, head(), pending("w-0"), queue=admitted), after=1)
    job.see(held(1, head(), pending("w-0"), queue=admitted), after=290)
    assert job.state.stage is Stage.STARTING
    job.see(held(1, head(), pending("w-0"), queue=admitted), after=15)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY


def test_queue_timeout_leaves_the_tier_without_a_failure() -> None:
    job = waiting(queue_timeout=1800.0)
    decision = job.see(held(1), after=10)
    assert decision.wake_at is not None
    assert job.now < decision.wake_at <= job.now + 1800
    explanation = job.explanation
    assert (explanation.timer, explanation.then) == ("queueTimeout", "the job leaves the tier")
    job.see(held(1), after=1795)
    assert (job.state.stage, job.state.reason) == (Stage.ENDING, Reason.QUEUE_TIMEOUT)
    assert job.state.message == f"no quota for 30m: {SAID}"
    job.see(after=1)
    assert (job.state.tier, job.state.failures) == ("on-demand", 0)


@pytest.mark.parametrize(
    ("policy", "names", "number"),
    [(Greedy(), ("spot-a", "spot-b", "on-demand"), 2), (Greedy(), ("spot-a",), 1), (Ordered(), ("spot-a",), 2)],
    ids=["other tiers", "one tier of a policy", "restart"],
)
def test_queue_timeout_leaves_the_tier_also_under_a_policy_that_keeps_it_open(
    policy: Policy, names: tuple[str, ...], number: int
) -> None:
    """Regression: the next attempt joined the end of the same queue. Without another tier, the attempt keeps its
    place."""
    tiers = (tier(name, 0, 300.0, queue_timeout=1800.0) for name in names)
    job = SteppedJob(spec(*tiers, exhausted=Exhausted.RESTART), policy)
    job.see()
    job.see(held(1), after=1)
    job.see(held(1), after=1801)
    if job.state.stage is Stage.ENDING:
        job.see(after=1)
    assert (job.state.stage, job.state.tier, job.number) == (Stage.STARTING, names[:2][-1], number)
    assert job.state.record("spot-a").exhausted_by is None


PODS = (lost("head", Cause.DELETED), lost("w1-0", Cause.DELETED), lost("w1-1", Cause.DELETED))


@pytest.mark.parametrize("unit", list(FailureUnit))
@pytest.mark.parametrize(
    "seen",
    [
        held(1, *PODS, queue=evicted(QueueEviction.PREEMPTED)),
        held(1, queue=evicted(QueueEviction.PREEMPTED)),
        held(1, *PODS, queue=HELD),
        held(1, head(), worker("new"), queue=evicted(QueueEviction.PREEMPTED, held=False)),
        held(1, *PODS, queue=evicted(QueueEviction.PREEMPTED), exit=Exit.FAILED, message="exit code 1"),
        held(1, *PODS, queue=evicted(QueueEviction.PREEMPTED), exit=Exit.LOST, message="its RayCluster is gone"),
    ],
    ids=["going", "gone", "no Workload", "admitted again", "its program failed", "its cluster is gone"],
)  # fmt: skip
def test_a_preemption_is_no_failure_of_the_tier_or_of_the_program(seen: AttemptSeen, unit: FailureUnit) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1), failure_unit=unit)).running()
    job.see(seen, after=5)
    assert (job.state.stage, job.state.reason) == (Stage.ENDING, Reason.PREEMPTED)
    assert (job.state.failures, job.state.application_failures) == (0, 0)
    assert job.losses == []
    job.see(after=1)
    assert (job.state.tier, job.state.last_number) == ("spot-a", 2), "the next attempt joins the queue"


def test_queue_timeout_decides_how_long_a_preempted_job_keeps_its_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 0, queue_timeout=1800.0), tier("on-demand", -1))).running()
    for number in range(1, 4):
        job.see(held(number, queue=evicted(QueueEviction.PREEMPTED)), after=5)
        job.see(after=1)
        job.see(held(number + 1), after=1)
        assert (job.state.stage, job.state.tier) == (Stage.STARTING, "spot-a")
        if number < 3:
            job.see(all_ready(number + 1, queue=QueueSeen("team")), after=1700)
    job.see(held(4), after=1801)
    job.see(after=1)
    assert (job.state.tier, job.state.record("spot-a").exhausted_by) == ("on-demand", Reason.QUEUE_TIMEOUT)
    assert job.state.failures == 0


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        (QueueEviction.PODS_READY_TIMEOUT, Reason.PODS_READY_TIMEOUT),
        (QueueEviction.STOPPED, Reason.QUOTA_WITHDRAWN),
        (QueueEviction.CHECK_FAILED, Reason.QUOTA_WITHDRAWN),
    ],
)
def test_an_attempt_ended_by_the_queue_or_its_administrator_is_no_failure(why: QueueEviction, reason: Reason) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1))).running()
    job.see(held(1, *PODS, queue=evicted(why)), after=5)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.ENDING, reason, 0)
    job.see(after=1)
    assert job.state.tier == "spot-a"


def test_waiting_for_quota_again_does_not_use_up_provision_timeout() -> None:
    """waitForPodsReady of the queue does not restart provisionTimeout: it continues where it stopped."""
    job = waiting()
    admitted = QueueSeen("team")
    job.see(held(1, pending("w-0"), queue=admitted), after=1)
    job.see(held(1, pending("w-0"), queue=admitted), after=200)
    job.see(held(1, queue=evicted(QueueEviction.PODS_READY_TIMEOUT)), after=1)
    job.see(after=1)
    job.see(held(2), after=1)
    job.see(held(2), after=DAY)
    assert job.state.stage is Stage.STARTING
    job.see(held(2, pending("w-0"), queue=admitted), after=1)
    job.see(held(2, pending("w-0"), queue=admitted), after=110)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY


def test_a_deactivated_workload_pauses_the_job_until_it_is_activated() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1))).running()
    job.see(held(1, *PODS, queue=evicted(QueueEviction.DEACTIVATED)), after=5)
    for _ in range(10):
        job.see(held(1, queue=evicted(QueueEviction.DEACTIVATED)), after=DAY)
    assert (job.state.stage, job.state.last_number, job.state.failures) == (Stage.RECOVERING, 1, 0)
    job.see(replace(all_ready(1), queue=evicted(QueueEviction.DEACTIVATED, held=False)), after=5)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.ENDING, Reason.QUOTA_WITHDRAWN, 0)


def test_a_deactivation_during_a_wait_for_capacity_is_no_recovery_that_takes_too_long() -> None:
    """recoveryTimeout passes, without effect, while the replacement waits for capacity."""
    job = SteppedJob(spec(tier("spot-a", -1, DAY), recovery_timeout=60.0)).running()
    without_capacity = attempt(1, head(), worker("w1-0"), pending("new", unschedulable=True), queue=QueueSeen("team"))
    for _ in range(3):
        job.see(without_capacity, after=50)
    failures = job.state.failures
    job.see(held(1, queue=evicted(QueueEviction.DEACTIVATED)), after=5)
    assert (job.state.stage, job.state.failures) == (Stage.RECOVERING, failures)


def test_an_attempt_that_a_deactivation_ends_does_not_stall_meanwhile() -> None:
    """Its pods live for their grace period, in which the program commits no more."""
    job = SteppedJob(spec(tier("spot-a", 0), stall_timeout=60.0)).running()
    for _ in range(3):
        job.see(replace(all_ready(1), queue=evicted(QueueEviction.DEACTIVATED), hung="rank 0"), after=50)
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 0)


GONE_HEAD = PodSeen("head", PodRole.HEAD, PodPhase.LOST, ready=False, cause=Cause.DELETED)
CRASHED_HEAD = replace(GONE_HEAD, cause=Cause.APP_ERROR, exit_code=1)


@pytest.mark.parametrize(
    "seen",
    [
        held(1, GONE_HEAD, *PODS[1:], queue=evicted(QueueEviction.DEACTIVATED)),
        held(1, GONE_HEAD, queue=evicted(QueueEviction.DEACTIVATED)),
        held(1, CRASHED_HEAD, queue=evicted(QueueEviction.DEACTIVATED)),
        held(1, GONE_HEAD, queue=evicted(QueueEviction.DEACTIVATED), exit=Exit.LOST, message="its RayCluster is gone"),
        held(1, GONE_HEAD, queue=evicted(QueueEviction.DEACTIVATED), exit=Exit.INTERRUPTED),
    ],
    ids=["all pods", "the head", "a head that stopped with an error", "the cluster", "its program"],
)  # fmt: skip
@pytest.mark.parametrize("running", [True, False], ids=["ready before", "not ready before"])
def test_a_head_that_a_deactivation_removes_is_no_failure(seen: AttemptSeen, running: bool) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand", -1)))
    if running:
        job.running()
    else:
        job.see()
        job.see(held(1, head(), pending("w-0"), queue=QueueSeen("team")), after=1)
    job.see(seen, after=5)
    job.see(held(1, queue=evicted(QueueEviction.DEACTIVATED)), after=DAY)
    assert (job.state.attempt and job.state.attempt.number, job.state.failures, job.state.failed_starts.crashes) == (
        1,
        0,
        0,
    )
    assert job.state.record("spot-a").exhausted_by is None
    assert job.impeded.reason is Reason.WAITING_FOR_QUOTA


def test_an_attempt_suspended_without_a_queue_waits_before_its_start_and_is_lost_after_it() -> None:
    by_hand = QueueSeen(held=True, message="suspended by another client", eviction=QueueEviction.SUSPENDED)
    job = waiting()
    job.see(held(1, queue=by_hand), after=DAY)
    assert (job.state.stage, job.state.failures) == (Stage.STARTING, 0)
    job = SteppedJob(spec(tier("spot-a", 1), tier("on-demand", -1))).running()
    job.see(held(1, *PODS, queue=by_hand), after=5)
    assert (job.state.stage, job.state.reason, job.state.failures) == (Stage.ENDING, Reason.HEAD_LOST, 1)
    assert [loss.cause for loss in job.losses] == [Cause.UNKNOWN]


def test_a_program_that_succeeded_is_not_preempted_afterwards() -> None:
    job = SteppedJob(spec(tier("spot-a", 0))).running()
    job.commit(100, 100).see(held(1, queue=evicted(QueueEviction.PREEMPTED), exit=Exit.SUCCEEDED), after=5)
    assert job.state.stage is Stage.SUCCEEDED


def refused_by_check(**more: Any) -> QueueSeen:
    return QueueSeen("team", held=True, message="admission check dws: no capacity", refused=True, **more)


@pytest.mark.parametrize("asks", OnInsufficientCapacity)
def test_a_provisioner_behind_the_queue_without_capacity_is_missing_capacity_of_the_tier(
    asks: OnInsufficientCapacity,
) -> None:
    job = waiting(on_insufficient_capacity=asks)
    job.see(held(1), after=DAY)
    job.see(held(1, queue=refused_by_check()), after=1)
    if asks is OnInsufficientCapacity.WAIT:
        assert job.impeded.reason is Reason.WAITING_FOR_CAPACITY
        explanation = job.explanation
        assert (explanation.message, explanation.timer) == ("admission check dws: no capacity", "provisionTimeout")
        job.see(held(1, queue=refused_by_check(eviction=QueueEviction.CHECK_FAILED)), after=200)
        assert job.state.stage is Stage.STARTING, "the queue asks its provisioner again"
        job.see(held(1, queue=refused_by_check()), after=150)
    assert job.state.record("spot-a").exhausted_by is Reason.INSUFFICIENT_CAPACITY
    assert job.state.failures == 0


def test_an_attempt_that_is_admitted_after_its_check_failed_runs_and_counts_its_losses() -> None:
    job = waiting()
    again = QueueSeen("team", eviction=QueueEviction.CHECK_FAILED)
    job.see(held(1, queue=refused_by_check(eviction=QueueEviction.CHECK_FAILED)), after=5)
    job.see(replace(all_ready(1), queue=again), after=5)
    assert job.state.stage is Stage.RUNNING
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1"), queue=again), after=5)
    assert job.state.failures == 1
