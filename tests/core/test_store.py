"""Problems of the checkpoint store (an outage, refused credentials, a fence) are no failure of a tier."""

from __future__ import annotations

import pytest

from spotladder.core.diagnosis.impediment import classify
from spotladder.core.history.crashes import FIRST_BACKOFF, LONGEST_BACKOFF
from spotladder.core.model import Exit, PodPhase, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, all_ready, attempt, spec, tier

STALL = 600.0
REFUSED = "exit code 77: access denied"
UNSAFE = "exit code 78: the store is not safe for checkpoints"


def running() -> SteppedJob:
    return SteppedJob(spec(tier("spot-a", 0, 300), tier("on-demand", 0), stall_timeout=STALL)).running()


def untouched(job: SteppedJob) -> bool:
    """Whether no failure was counted and the job is on its first tier."""
    return (job.state.failures, job.state.tier, job.state.record("spot-a").exhausted_by) == (0, "spot-a", None)


def refuse(job: SteppedJob, how: Exit = Exit.REFUSED, message: str = REFUSED) -> SteppedJob:
    """The attempt ends with exit code 77 or 78, and its objects go."""
    job.see(all_ready(job.number, exit=how, message=message), after=1)
    assert job.state.stage is Stage.ENDING
    job.see(after=1)
    return job


def test_a_program_that_progresses_during_a_bucket_outage_is_not_stalled() -> None:
    job = running().commit(10)
    began = job.now
    for _ in range(24):
        job.now += 300
        away = all_ready(1, moved_at=job.now - 5, store_unavailable_since=began, store_message="refused")
        job.see(away)
        assert job.state.stage is Stage.RUNNING
        assert job.impeded.reason is Reason.STORE_UNAVAILABLE
    job.see(all_ready(1, moved_at=job.now), after=5)
    assert job.state.stage is Stage.RUNNING, "stallTimeout starts again after the outage"
    job.see(all_ready(1, moved_at=job.now), after=STALL - 10)
    assert job.state.stage is Stage.RUNNING
    assert untouched(job)


def test_stall_timeout_restarts_after_a_bucket_outage() -> None:
    job = running().commit(10)
    job.see(all_ready(1, store_unavailable_since=job.now), after=STALL - 1)
    job.see(all_ready(1), after=1)
    job.see(all_ready(1), after=STALL - 1)
    assert job.state.stage is Stage.RUNNING
    job.see(all_ready(1), after=2)
    assert job.state.stage is not Stage.RUNNING


def test_refused_credentials_are_no_failure_and_back_off() -> None:
    job = running()
    pauses = []
    for _ in range(8):
        refuse(job)
        assert job.state.stage is Stage.IDLE
        assert job.impeded.reason is Reason.ACCESS_DENIED
        found = classify(job.situation)
        assert found is not None
        assert REFUSED in found.message
        assert job.state.timers.paused_until is not None
        pauses.append(job.state.timers.paused_until - job.now + 1)
        job.now = job.state.timers.paused_until
        job.running()
        assert untouched(job)
    assert pauses[0] == FIRST_BACKOFF
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_BACKOFF
    job.commit(20).see(all_ready(job.number), after=1)
    refuse(job)
    assert job.state.timers.paused_until == pytest.approx(job.now - 1 + FIRST_BACKOFF)


def test_a_job_without_commits_ends_where_its_store_is_unsafe() -> None:
    job = refuse(running(), Exit.UNSAFE, UNSAFE)
    assert (job.state.stage, job.state.reason, job.state.message) == (Stage.FAILED, Reason.STORE_UNSAFE, UNSAFE)
    assert job.state.last_number == 1, "no tier can mend it"
    assert untouched(job)


def test_a_job_with_commits_waits_until_its_store_is_safe_again() -> None:
    job = running().commit(10)
    for _ in range(3):
        refuse(job, Exit.UNSAFE, UNSAFE)
        assert job.state.stage is Stage.IDLE
        found = classify(job.situation)
        assert found is not None
        assert (found.rule.reason, found.rule.degraded, found.message) == (Reason.STORE_UNSAFE, True, UNSAFE)
        assert job.state.timers.paused_until is not None
        job.now = job.state.timers.paused_until
        job.running()
    assert untouched(job)


def test_a_crash_after_refused_credentials_is_not_explained_by_them() -> None:
    """Regression: until the next commit, every backoff was explained by the credentials of an earlier attempt."""
    job = refuse(running())
    assert job.state.timers.paused_until is not None
    job.now = job.state.timers.paused_until
    job.see()
    number = job.number
    job.see(attempt(number), after=1)
    crashed = PodSeen("head", PodRole.HEAD, PodPhase.LOST, ready=False, cause=Cause.APP_ERROR, exit_code=2)
    job.see(attempt(number, crashed), after=1)
    job.see(after=1)
    assert (job.state.stage, job.state.refusals.error) == (Stage.IDLE, REFUSED)
    assert job.impeded.reason is Reason.CRASH_LOOP


def test_a_program_that_interrupts_itself_after_refused_credentials_is_a_crash_loop() -> None:
    job = refuse(running())
    assert job.state.timers.paused_until is not None
    job.now = job.state.timers.paused_until
    for _ in range(2):
        number = job.running().number
        job.see(all_ready(number, exit=Exit.INTERRUPTED), after=1)
        job.see(after=1)
    assert job.state.stage is Stage.IDLE
    assert job.impeded.reason is Reason.CRASH_LOOP


@pytest.mark.parametrize("stage", [Stage.STARTING, Stage.RUNNING, Stage.RECOVERING])
@pytest.mark.parametrize(("how", "reason"), [(Exit.REFUSED, Reason.ACCESS_DENIED), (Exit.UNSAFE, Reason.STORE_UNSAFE)])
def test_a_store_that_no_retry_mends_ends_the_attempt_in_every_live_stage(
    stage: Stage, how: Exit, reason: Reason
) -> None:
    job = running()
    if stage is Stage.RECOVERING:
        job.edit(tiers=(tier("spot-a", 5), tier("on-demand", 0)))
        job.see(attempt(1, *all_ready(1).pods[:2]), after=1)
    if stage is Stage.STARTING:
        job = SteppedJob(spec(tier("spot-a", 0, 300), tier("on-demand", 0))).planned()
        job.see(attempt(1, *all_ready(1).pods[:2]), after=1)
    assert job.state.stage is stage
    failures = job.state.failures
    job.see(attempt(1, *all_ready(1).pods[:2], exit=how, message=REFUSED), after=1)
    assert job.reasons[-1] is reason
    assert job.state.failures == failures
