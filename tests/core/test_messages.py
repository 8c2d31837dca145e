"""The message of each move: the wording is part of the interface."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import Exhausted, Exit, OnInsufficientCapacity, Progress, Stage
from spotladder.core.reasons import Reason
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


def message(job: SteppedJob, reason: Reason) -> str:
    return next(move.message for move in reversed(job.moves) if move.reason is reason)


def test_messages_of_starts_and_fallbacks_name_the_attempt_and_the_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"))).running()
    assert message(job, Reason.STARTED) == "attempt 1 on spot-a"
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    assert message(job, Reason.MAX_FAILURES_EXCEEDED) == "1 failure on spot-a, 0 tolerated"
    assert message(job, Reason.FELL_BACK) == "attempt 2 on on-demand, from spot-a (MaxFailuresExceeded)"


def test_a_loss_within_the_limit_names_the_pods_and_their_causes() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    assert message(job, Reason.RECOVERING) == "w1-0 (Interruption)"


def test_a_recovery_without_a_loss_has_its_cause_in_the_message() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), worker("w1-0", ready=False), worker("w1-1")), after=1)
    assert message(job, Reason.RECOVERING) == "not every pod is ready"
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(unavailable={"spot-a": "timeout"}, after=1)
    assert message(job, Reason.RECOVERING) == "its cluster cannot be reached"


def test_a_notice_names_its_pods() -> None:
    for extra in ((worker("w1-1"),), (lost("w1-1"),)):
        job = SteppedJob(spec(tier("spot-a", 5))).running()
        if extra[0].uid and not extra[0].ready:
            job.see(attempt(1, head(), worker("w1-0"), *extra), after=1)
        job.see(attempt(1, head(), noticed("w1-0"), *extra), after=1)
        assert message(job, Reason.EVICTION_NOTICE) == "w1-0 (Interruption)"
        assert job.state.failures == len([pod for pod in extra if not pod.ready]) + 1


def test_messages_of_timeouts_have_their_length() -> None:
    job = SteppedJob(
        spec(tier("spot-a", 5, 60), tier("on-demand", -1), recovery_timeout=30, stall_timeout=300, grace=20)
    ).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=1)
    job.see(attempt(1, head(), worker("w1-1")), after=30)
    assert message(job, Reason.RECOVERY_TIMEOUT) == "not all workers ready again within 30 s"
    job.see(after=1)
    job.see(attempt(2, head(), pending("w")), after=60)
    assert message(job, Reason.INSUFFICIENT_CAPACITY) == "not all workers ready for 60 s"
    job.see(after=1)
    job.running(3).see(all_ready(3), after=300)
    assert message(job, Reason.STALLED) == "no commit for 300 s"
    job = SteppedJob(spec(grace=20)).running()
    job.edit(suspend=True).see(all_ready(1), after=1)
    job.see(all_ready(1), after=20)
    assert message(job, Reason.GRACE_EXCEEDED) == "did not stop within 20 s"


def test_the_message_of_a_shortened_drain_has_its_actual_length() -> None:
    """Regression: "did not stop within 15 s" for an attempt whose node was lost after 6 s."""
    job = SteppedJob(spec(grace=15)).running()
    job.see(attempt(1, head(), noticed("w1-0", job.now + 7), worker("w1-1")), after=1)
    job.see(attempt(1, head(), noticed("w1-0", job.now + 6), worker("w1-1")), after=6)
    assert message(job, Reason.GRACE_EXCEEDED) == "did not stop within 6 s"


def test_the_message_after_the_last_tier_lists_all_tiers() -> None:
    for end, reason in ((Exhausted.FAIL, Reason.TIERS_EXHAUSTED), (Exhausted.RESTART, Reason.BEGIN_AGAIN)):
        job = SteppedJob(spec(tier("spot-a", 0), exhausted=end)).running()
        job.lose_attempt(lost("w1-0"), worker("w1-1"))
        assert message(job, reason) == "every tier is exhausted: spot-a (MaxFailuresExceeded)"


def test_the_message_of_the_wait_after_the_last_tier_has_its_length() -> None:
    tiers = tier("spot-a", 0, 90.0), tier("spot-b", 0, 600.0)
    job = SteppedJob(spec(*tiers, exhausted=Exhausted.WAIT)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    job.running(2).lose_attempt(lost("w2-0"), worker("w2-1"))
    assert message(job, Reason.WAITING_TO_BEGIN_AGAIN).endswith("; restarts at spot-a in 10m (exhausted: Wait)")
    assert (job.state.stage, job.state.reason) == (Stage.IDLE, Reason.WAITING_TO_BEGIN_AGAIN)
    job.see(after=600)
    assert job.reasons[-1] is Reason.STARTED


def test_the_message_names_the_field_whose_deadline_has_passed() -> None:
    job = SteppedJob(spec(max_duration=7200.0, deadline=START + 9000)).running()
    job.see(all_ready(1), after=7200)
    assert message(job, Reason.DEADLINE_EXCEEDED) == (
        "spec.maxDuration (2h from the job's creation) has passed: 0 steps are committed"
    )
    job = SteppedJob(spec(max_duration=7200.0, deadline=START + 3600)).running()
    job.see(all_ready(1), after=3600)
    assert message(job, Reason.DEADLINE_EXCEEDED) == "spec.deadline has passed: 0 steps are committed"


def test_messages_of_exceeded_limits_have_the_progress_of_the_job() -> None:
    job = SteppedJob(spec(priced("spot-a", 3.6, 3.6), budget=0.5, stall_timeout=1e9)).running()
    job.see(all_ready(1), after=1000)
    assert message(job, Reason.BUDGET_EXCEEDED) == "2.00 of 0.50 USD are spent"
    job = SteppedJob(spec(deadline=START + 100)).running()
    job.progress = Progress(7, 50, START, 1)
    job.see(all_ready(1), after=100)
    assert message(job, Reason.DEADLINE_EXCEEDED) == "spec.deadline has passed: 7 of 50 steps are committed"
    job = SteppedJob(spec(tier("spot-a", 5), backoff_limit=0)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    assert message(job, Reason.BACKOFF_LIMIT_EXCEEDED) == "1 failure over all tiers, 0 tolerated"


def test_messages_of_abandoned_and_fenced_attempts() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), recovery_timeout=1)).running()
    stuck = attempt(1, head(), lost("w1-0"), worker("w1-1"))
    job.see(stuck, after=1)
    job.see(stuck, after=1)
    job.see(stuck, after=10)
    assert message(job, Reason.LEFT_BEHIND) == (
        "not confirmed gone; it may commit until the program of the next attempt starts, which fences it"
    )
    job = SteppedJob().running()
    job.progress = Progress(5, 10, START, attempt=7)
    job.see(all_ready(1, exit=Exit.FENCED), after=1)
    assert message(job, Reason.FENCED) == "attempt 7 of another controller owns the commit log"


def test_the_message_of_the_program_is_passed_on() -> None:
    job = SteppedJob().running()
    job.see(attempt(1, head(), lost("w1-0"), exit=Exit.FAILED, message="exit code 3"), after=1)
    assert (job.state.stage, message(job, Reason.INTERRUPTED)) == (Stage.ENDING, "exit code 3")
    job = SteppedJob().running()
    job.see(all_ready(1, exit=Exit.LOST, message="Ray head pod not found."), after=1)
    assert message(job, Reason.HEAD_LOST) == "Ray head pod not found."


def test_the_message_names_the_tier_that_was_removed() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("spot-b"))).running()
    job.edit(tiers=(tier("spot-b"),)).see(all_ready(1), after=1)
    assert message(job, Reason.TIER_REMOVED) == "spot-a is no longer among the tiers"


def test_a_refusal_of_the_provisioner_has_its_own_message() -> None:
    mode = OnInsufficientCapacity.FALLBACK
    job = SteppedJob(spec(tier("spot-a", 1, on_insufficient_capacity=mode), tier("on-demand")))
    job.see()
    job.see(attempt(1, head(), refused("w")), after=1)
    assert message(job, Reason.INSUFFICIENT_CAPACITY) == "the provisioner has no capacity"


def test_a_move_names_its_tier_and_has_no_message_where_the_reason_suffices() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"))).running()
    assert message(job, Reason.ALL_READY) == ""
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    tiers = [(move.reason, move.tier) for move in job.moves]
    assert (Reason.ALL_READY, "spot-a") in tiers
    assert (Reason.MAX_FAILURES_EXCEEDED, "spot-a") in tiers
    assert (Reason.FELL_BACK, "on-demand") in tiers


@pytest.mark.parametrize(
    ("spent", "budget", "said"),
    [
        (12.4, 12.0, "12.40 of 12.00 USD are spent"),
        (0.0012, 0.001, "0.0012 of 0.0010 USD are spent"),
        (0.0000031, 0.000003, "0.00000310 of 0.00000300 USD are spent"),
    ],
)
def test_a_small_budget_is_not_rounded_to_zero(spent: float, budget: float, said: str) -> None:
    job = SteppedJob(spec(tier("spot-a"), budget=budget)).running()
    job.state = replace(job.state, tiers=(replace(job.state.record("spot-a"), cost=spent),))
    job.see(all_ready(1), after=0.001)
    assert message(job, Reason.BUDGET_EXCEEDED) == said


def test_the_message_of_a_slow_start_has_its_timeout() -> None:
    job = SteppedJob(spec(tier("spot-a", 5, 60), start_timeout=120)).planned()
    placed = [replace(pending(f"w-{index}"), scheduled=True, image_pulled=True) for index in range(2)]
    for after in (1, 121):
        job.see(attempt(1, head(), *placed), after=after)
    assert message(job, Reason.START_TIMEOUT) == "every pod was placed, but the attempt was not ready within 2m"
