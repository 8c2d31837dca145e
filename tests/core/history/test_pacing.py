"""A program that repeatedly exits with 75 without a notice, a loss or a commit is restarted with growing backoff."""

from __future__ import annotations

from typing import Any

from spotladder.core.diagnosis.impediment import classify
from spotladder.core.model import Exit, Observation, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation
from tests.core.builders import SteppedJob, all_ready, attempt, head, noticed, spec, tier, worker


def forever() -> SteppedJob:
    return SteppedJob(spec(tier("on-demand", -1)))


def stops(job: SteppedJob, **ended: Any) -> float:
    """The live attempt stops with exit code 75. Returns the wait before the next attempt in seconds."""
    number = job.number
    job.see(all_ready(number, exit=Exit.INTERRUPTED, **ended), after=1)
    job.see(after=1)
    began = job.now
    while job.state.attempt is None:
        assert job.state.stage is Stage.IDLE
        assert job.last.wake_at is not None
        job.see(after=max(0.0, job.last.wake_at - job.now))
    return job.now - began


def test_the_backoff_doubles_up_to_its_limit() -> None:
    """Regression: `exit 75` with maxFailures: -1 started attempts endlessly and without backoff."""
    job = forever()
    pauses = [round(stops(job.running()), 1) for _ in range(8)]
    assert pauses == [0.0, 9.0, 19.0, 39.0, 79.0, 159.0, 299.0, 299.0]


def test_the_backoff_is_explained_as_a_crash_loop() -> None:
    job = forever()
    stops(job.running())
    number = job.running().number
    job.see(all_ready(number, exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert job.impeded.reason is Reason.CRASH_LOOP
    found = classify(Situation(job.spec, job.state, Observation(job.revision), job.now))
    assert found is not None
    assert found.message.startswith("attempts end with exit code 75 in succession")


def test_an_attempt_that_commits_resets_the_backoff() -> None:
    job = forever()
    for _ in range(3):
        stops(job.running())
    job.running().commit(10)
    assert stops(job) == 0.0
    assert stops(job.running()) == 0.0, "the first without a commit"


def test_the_next_attempt_after_a_notice_starts_without_backoff() -> None:
    job = forever()
    for _ in range(3):
        job.running()
        job.see(attempt(job.number, head(), noticed("w", job.now + 30), worker("v")), after=1)
        number = job.number
        job.see(attempt(number, head(), exit=Exit.INTERRUPTED), after=1)
        job.see(after=1)
        assert job.number == number + 1
