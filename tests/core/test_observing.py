"""The effects of an observation on the state."""

from __future__ import annotations

from spotladder.core.model import Steps
from tests.core.builders import SteppedJob, all_ready, spec, tier


def test_a_step_that_is_reported_again_keeps_its_time() -> None:
    job = SteppedJob(spec(tier("spot-a", 2))).running()
    for step in (7, 7, 0, 9):
        job.see(all_ready(1, step=step), after=10)
    first = job.now - 30
    assert job.attempt.steps == (Steps(7, first, 9, job.now),)
    job.see(all_ready(1, step=9), after=10)
    assert job.attempt.steps == (Steps(7, first, 9, job.now - 10),)
