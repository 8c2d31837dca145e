"""Attempts that end before they are ready: a crash of the program exhausts no tier, and restart loops back off."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.history.crashes import CRASH_LIMIT, FIRST_BACKOFF, LONGEST_BACKOFF
from spotladder.core.model import AttemptSeen, Exhausted, Exit, PodPhase, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker


def test_a_program_that_fails_while_its_peers_have_no_node_yet_is_a_failed_start() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), workers=3))
    gone = lost("w-0/1", Cause.APP_ERROR, exit_code=1, exit_message="host not found")
    alone = attempt(1, pending("w-0"), gone, worker("w-1"), pending("w-2"), exit=Exit.FAILED, message="exit code 1")
    job.see()
    job.see(alone, after=5)
    assert (job.reasons[-1], job.state.application_failures) == (Reason.START_CRASHED, 0)
    assert "host not found" in job.state.message
    job.see(after=1)
    job.see(after=60)
    assert (job.number, job.state.tier, job.state.failures) == (2, "spot-a", 0)


def test_a_program_that_fails_after_its_peers_have_started_has_failed() -> None:
    job = SteppedJob(spec(tier("spot-a", 0), workers=2))
    gone = lost("w-0/1", Cause.APP_ERROR, exit_code=1)
    failed = attempt(1, pending("w-0"), gone, worker("w-1"), exit=Exit.FAILED, message="exit code 1")
    job.see()
    job.see(failed, after=5)
    assert job.state.reason is Reason.APPLICATION_FAILED


def crashed(number: int, code: int = 2, *, role: PodRole = PodRole.HEAD, words: str = "", **more: Any) -> AttemptSeen:
    pod = PodSeen(
        f"a{number}-{role}", role, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, exit_code=code, exit_message=words
    )
    others = (pending(f"w{number}-0"),) if role is PodRole.HEAD else (head(), pending(f"w{number}-1"))
    return attempt(number, pod, *others, **more)


def job(**more: Any) -> SteppedJob:
    return SteppedJob(spec(tier("spot", 0), tier("od", -1), **more))


def crash(one: SteppedJob, **more: Any) -> float:
    """Let the next attempt crash at its start. Returns the backoff before it was planned, in seconds."""
    paused = one.now
    while one.state.attempt is None and one.state.stage is Stage.IDLE:
        one.see(after=max(0.0, (one.last.wake_at or one.now) - one.now))
    pause = one.now - paused
    one.see(attempt(one.number), after=1)
    one.see(crashed(one.number, **more), after=5)
    if one.state.stage is Stage.ENDING:
        one.see()
    return pause


@pytest.mark.parametrize("role", list(PodRole))
def test_a_crash_loop_at_the_start_exhausts_no_tier_and_fails_the_job_at_the_limit(role: PodRole) -> None:
    one = job()
    pauses = [crash(one, role=role, words="Error: No such option: --bogus-flag") for _ in range(CRASH_LIMIT)]
    assert pauses == [0, *(FIRST_BACKOFF * 2**doublings for doublings in range(CRASH_LIMIT - 1))]
    assert (one.state.stage, one.state.reason) == (Stage.FAILED, Reason.CRASH_LOOP)
    assert one.state.message == (
        f"the {role} ended with exit code 2 (AppError) before the attempt was ready, {CRASH_LIMIT} times in "
        "succession: Error: No such option: --bogus-flag"
    )
    assert (one.state.failures, one.state.last_number, one.state.tier) == (0, CRASH_LIMIT, "spot")
    assert [record.exhausted_by for record in one.state.tiers] == [None]


@pytest.mark.parametrize("exhausted", [Exhausted.RESTART, Exhausted.WAIT])
def test_with_exhausted_restart_or_wait_a_crash_loop_continues_with_the_longest_backoff(exhausted: Exhausted) -> None:
    one = job(exhausted=exhausted)
    pauses = [crash(one) for _ in range(CRASH_LIMIT + 5)]
    assert one.state.stage is Stage.IDLE
    assert pauses[-1] == (600.0 if exhausted is Exhausted.WAIT else LONGEST_BACKOFF)
    assert (one.state.failures, one.state.tier) == (0, "spot")


def test_crashes_with_different_exit_codes_are_no_crash_loop_but_the_backoff_grows() -> None:
    one = job()
    pauses = [crash(one, code=2 + index % 2) for index in range(CRASH_LIMIT + 2)]
    assert one.state.stage is Stage.IDLE
    assert pauses[-1] == LONGEST_BACKOFF


def test_an_attempt_that_becomes_ready_resets_the_crash_count() -> None:
    one = job()
    for _ in range(CRASH_LIMIT - 1):
        crash(one)
    one.see(after=LONGEST_BACKOFF)
    one.see(all_ready(one.number), after=5)
    assert (
        one.state.stage,
        one.state.failed_starts.crashes,
        one.state.failed_starts.crash,
        one.state.failed_starts.unready,
    ) == (Stage.RUNNING, 0, "", 0)


def test_a_crash_after_the_attempt_was_ready_counts_as_a_failure() -> None:
    one = job().running()
    gone = PodSeen("head", PodRole.HEAD, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, exit_code=2)
    one.see(attempt(1, gone, *all_ready(1).pods[1:]), after=1)
    assert (one.end_reason, one.state.failures) == (Reason.MAX_FAILURES_EXCEEDED, 1)


def test_the_message_of_a_crashed_start_has_the_pod_and_the_end_of_its_output() -> None:
    one = job()
    one.see()
    gone = crashed(1).pods
    named = [replace(pod, name="digits-head", exit_message="no such option") if pod.exit_code else pod for pod in gone]
    one.see(attempt(1, *named), after=5)
    assert re.fullmatch(r"digits-head: the head ended with exit code 2 .*: no such option", one.moves[-1].message)


def test_a_node_lost_while_the_attempt_starts_counts_as_a_failure() -> None:
    one = SteppedJob(spec(tier("spot", 5), tier("od", -1)))
    one.see()
    lost = PodSeen("w1-0", phase=PodPhase.LOST, ready=False, cause=Cause.NODE_LOST)
    one.see(attempt(1, head(), lost, pending("w1-1")), after=5)
    assert [(loss.pod, loss.cause) for loss in one.losses] == [("w1-0", Cause.NODE_LOST)]


def test_after_counted_losses_the_first_restart_is_immediate_and_later_ones_back_off() -> None:
    one = SteppedJob(spec(tier("spot", -1)))
    one.see()
    starts = []
    for _ in range(4):
        one.see(attempt(one.number), after=1)
        one.see(attempt(one.number, head(PodPhase.LOST)), after=1)
        one.see()
        ended = one.now
        while one.state.attempt is None:
            one.see(after=(one.last.wake_at or one.now) - one.now)
        starts.append(one.now - ended)
    assert starts == [0, FIRST_BACKOFF, 2 * FIRST_BACKOFF, 4 * FIRST_BACKOFF]


@pytest.mark.parametrize(
    "edits",
    [
        ({"suspend": True}, {"suspend": False}),
        ({"tiers": (tier("spot", 0, template="corrected"), tier("od", -1))},),
    ],
    ids=["suspended and resumed", "another pod template"],
)
def test_edits_that_reset_the_backoff(edits: tuple[dict[str, Any], ...]) -> None:
    one = job()
    for _ in range(4):
        crash(one)
    assert one.state.stage is Stage.IDLE
    for edit in edits:
        one.edit(**edit).see(after=1)
    assert (one.state.stage, one.state.failed_starts.crashes, one.number) == (Stage.STARTING, 0, 5)


def test_start_timeout_ends_the_attempt_and_does_not_exhaust_the_tier() -> None:
    placed = PodSeen("w-0", phase=PodPhase.PENDING, ready=False, scheduled=True, image_pulled=True)
    one = SteppedJob(spec(tier("spot", 0, 40), tier("od", -1), workers=1, start_timeout=900.0))
    one.see()
    one.see(attempt(1, head(), placed), after=30)
    one.see(attempt(1, head(), placed), after=899)
    assert one.state.stage is Stage.STARTING
    one.see(attempt(1, head(), placed), after=1)
    assert (one.reasons[-1], one.state.failures, one.state.record("spot").exhausted_by) == (
        Reason.START_TIMEOUT,
        0,
        None,
    )
