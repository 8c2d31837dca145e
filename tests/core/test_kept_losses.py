"""What the state keeps of losses: when, how many pods, why, and how many failures they were."""

from __future__ import annotations

import math
from dataclasses import replace

from spotladder.core import codec
from spotladder.core.losses import KEPT_LOSSES, count, with_recovery
from spotladder.core.model import Attempt, FailureUnit, JobState, LossRecord, Stage
from spotladder.core.reasons import Cause
from tests.core.builders import START, SteppedJob, attempt, head, lost, noticed, spec, tier, worker

LIVE = Attempt(1, "spot-us-east-1a", START)


def test_pods_that_are_lost_together_for_the_same_cause_are_one_record() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), workers=4)).running(workers=4)
    job.see(attempt(1, head(), noticed("w1-0"), *(worker(f"w1-{index}") for index in (1, 2, 3))), after=1.25)
    at = math.floor(10 * job.now) / 10
    assert job.state.losses == (LossRecord(at, 1, "spot-a", Cause.INTERRUPTION, noticed=True),)
    pods = [lost("w1-0"), lost("w1-1"), lost("w1-2"), lost("w1-3", Cause.NODE_LOST)]
    job.see(attempt(1, head(), *pods), after=10)
    assert job.state.losses[1:] == (
        LossRecord(at + 10, 1, "spot-a", Cause.INTERRUPTION, pods=2, failures=2),
        LossRecord(at + 10, 1, "spot-a", Cause.NODE_LOST),
    )


def test_a_loss_during_a_start_is_kept() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).planned()
    job.see(attempt(1, head(), worker("w1-0"), worker("w1-1", ready=False)), after=5)
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1", ready=False)), after=5)
    assert job.state.stage is Stage.STARTING
    assert job.state.losses == (LossRecord(job.now, 1, "spot-a", Cause.INTERRUPTION),)


def test_a_record_has_the_time_at_which_all_workers_were_ready_again() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=10)
    job.see(attempt(1, head(), worker("w1-1"), lost("w1-0"), worker("new-0", ready=False)), after=10)
    job.see(attempt(1, head(), worker("w1-1"), worker("new-0")), after=60)
    ready_at = job.now
    job.see(attempt(1, head(), lost("w1-1"), worker("new-0")), after=100)
    assert [(one.at, one.ready_at) for one in job.state.losses] == [(ready_at - 70, ready_at), (job.now, None)]


def test_a_record_has_the_number_of_failures() -> None:
    job = SteppedJob(spec(tier("spot-a", 5), workers=3, failure_unit=FailureUnit.INTERRUPTION)).running(workers=3)
    drained = lost("w1-0", Cause.MAINTENANCE)
    job.see(attempt(1, head(), drained, lost("w1-1"), worker("w1-2")), after=1)
    job.see(attempt(1, head(), drained, lost("w1-1"), lost("w1-2")), after=1)
    assert [(one.pods, one.failures) for one in job.state.losses] == [(1, 0), (1, 1), (1, 0)]
    assert job.state.failures == 1


def test_the_newest_losses_are_kept_in_a_few_bytes_each() -> None:
    state = JobState(attempt=LIVE, clock=START)
    for number in range(KEPT_LOSSES + 3):
        state = replace(state, clock=state.clock + 917.3 + number)
        state, _ = count(state, [lost(f"lost-{number}")], FailureUnit.POD)
        state = with_recovery(state, LIVE, state.clock + 240 + number * 7 % 97)
    assert (len(state.losses), state.failures) == (KEPT_LOSSES, KEPT_LOSSES + 3)
    assert state.losses[-1].at == math.floor(10 * state.clock) / 10
    assert len(codec.pack(state)) - len(codec.pack(replace(state, losses=()))) < 20 * KEPT_LOSSES


def test_no_kept_loss_is_in_the_future_after_the_clock_stepped_back() -> None:
    job = SteppedJob(spec(tier("spot-a", 5))).running()
    job.see(attempt(1, head(), lost("w1-0"), worker("w1-1")), after=100)
    job.see(attempt(1, head(), worker("w1-1"), worker("new-0")), after=60)
    job.see(attempt(1, head(), worker("w1-1"), lost("new-0")), after=-3600)
    assert [(one.at, one.ready_at) for one in job.state.losses] == [(job.now, job.now), (job.now, None)]
