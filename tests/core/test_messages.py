"""The facts in the messages of moves: attempts, tiers, limits and causes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import AttemptSeen, Exhausted, Exit, Progress, Stage
from spotladder.core.reasons import Reason
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, noticed, spec, tier, worker


def message(job: SteppedJob, reason: Reason) -> str:
    return next(move.message for move in reversed(job.moves) if move.reason is reason)


def test_messages_of_starts_and_fallbacks_name_the_attempt_and_the_tier() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), tier("on-demand"))).running()
    assert message(job, Reason.STARTED) == "attempt 1 on spot-a"
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    assert message(job, Reason.MAX_FAILURES_EXCEEDED) == "1 failure on spot-a, 0 tolerated"
    assert message(job, Reason.FELL_BACK) == "attempt 2 on on-demand, from spot-a (MaxFailuresExceeded)"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (attempt(1, head(), lost("w1-0"), worker("w1-1")), "w1-0 (Interruption)"),
        (attempt(1, head(), worker("w1-0", ready=False), worker("w1-1")), "not every pod is ready"),
        (None, "its cluster cannot be reached"),
    ],
)
def test_the_message_of_a_recovery_has_its_cause(seen: AttemptSeen | None, said: str) -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    more = {} if seen else {"unavailable": {"spot-a": "timeout"}}
    job.see(*filter(None, [seen]), after=1, **more)
    assert message(job, Reason.RECOVERING) == said


def test_the_message_of_a_shortened_drain_has_its_actual_length() -> None:
    """Regression: "did not stop within 15 s" for an attempt whose node was lost after 6 s."""
    job = SteppedJob(spec(grace=15)).running()
    job.see(attempt(1, head(), noticed("w1-0", job.now + 7), worker("w1-1")), after=1)
    assert message(job, Reason.EVICTION_NOTICE) == "w1-0 (Interruption)"
    job.see(attempt(1, head(), noticed("w1-0", job.now + 6), worker("w1-1")), after=6)
    assert message(job, Reason.GRACE_EXCEEDED) == "did not stop within 6 s"


def test_the_message_of_a_long_wait_for_capacity_has_all_its_digits() -> None:
    """Regression: "not all workers ready for 1.2096e+06 s"."""
    job = SteppedJob(spec(tier("spot-a", 0, 1_209_600.0), tier("on-demand"))).planned()
    job.see(attempt(1, head()))
    job.see(attempt(1, head()), after=1_209_600)
    assert message(job, Reason.INSUFFICIENT_CAPACITY) == "not all workers ready for 1209600 s"


def test_the_message_of_a_long_drain_has_all_its_digits() -> None:
    """Regression: "did not stop within 1.24e+03 s"."""
    job = SteppedJob(spec(grace=1237)).running()
    job.spec = replace(job.spec, suspend=True)
    job.see_again(1)
    job.see_again(1237)
    assert message(job, Reason.GRACE_EXCEEDED) == "did not stop within 1237 s"


@pytest.mark.parametrize(
    ("end", "reason", "stage", "then"),
    [
        (Exhausted.FAIL, Reason.TIERS_EXHAUSTED, Stage.FAILED, ""),
        (Exhausted.RESTART, Reason.BEGIN_AGAIN, Stage.STARTING, ""),
        (Exhausted.WAIT, Reason.WAITING_TO_BEGIN_AGAIN, Stage.IDLE, "; restarts at spot-a in 10m (exhausted: Wait)"),
    ],
)
def test_after_the_last_tier_the_message_lists_all_tiers(
    end: Exhausted, reason: Reason, stage: Stage, then: str
) -> None:
    job = SteppedJob(spec(tier("spot-a", 0), exhausted=end)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    assert message(job, reason) == f"every tier is exhausted: spot-a (MaxFailuresExceeded){then}"
    assert job.state.stage is stage


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_duration": 7200.0, "deadline": START + 9000}, "spec.maxDuration (2h from the job's creation)"),
        ({"max_duration": 7200.0, "deadline": START + 3600}, "spec.deadline"),
    ],
)
def test_the_message_of_a_deadline_names_its_field_and_the_progress(limits: dict[str, Any], said: str) -> None:
    for progress, steps in ((Progress(7, 50, START, 1), "7 of 50 steps"), (Progress(7, 0, START, 1), "7 steps")):
        job = SteppedJob(spec(**limits)).running()
        job.progress = progress
        job.see(all_ready(1), after=7200)
        assert message(job, Reason.DEADLINE_EXCEEDED) == f"{said} has passed: {steps} are committed"


def test_the_message_of_the_jobs_own_limit_counts_all_failures() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), backoff_limit=0)).running()
    job.lose_attempt(lost("w1-0"), worker("w1-1"))
    assert message(job, Reason.BACKOFF_LIMIT_EXCEEDED) == "1 failure over all tiers, 0 tolerated"


def test_the_message_of_the_operator_is_passed_on() -> None:
    job = SteppedJob().running()
    job.see(all_ready(1, exit=Exit.LOST, message="Ray head pod not found."), after=1)
    assert message(job, Reason.HEAD_LOST) == "Ray head pod not found."


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
