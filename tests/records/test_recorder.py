"""What is recorded of a decision, each fact once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.accounting.held_nodes import account
from spotladder.core.model import Attempt, JobState, LeftAttempt, Observation, Price, Progress, Stage
from spotladder.core.reasons import Reason
from spotladder.records.model import Beat, DriverStarted, Ended, NodeChanged, Resized, Specified, Waited
from spotladder.records.recorder import Recorder
from tests.core.builders import (
    START,
    SteppedJob,
    all_ready,
    attempt,
    head,
    noticed,
    pending,
    priced,
    spec,
    tier,
    worker,
)

SPEC = spec(tier("spot-a"))
RUNNING = JobState(Stage.RUNNING, attempt=Attempt(1, "spot-a", START, workers=4), tier="spot-a", clock=START)


def test_the_spec_is_recorded_when_it_or_its_prices_change() -> None:
    recorder = Recorder("j", "n", (SPEC, "ordered"))
    assert list(recorder.specified(SPEC, "ordered", 1.0)) == []
    dear = replace(SPEC, tiers=(replace(SPEC.tiers[0], price=Price(2.0)),))
    assert list(recorder.specified(dear, "ordered", 2.0)) == [Specified(2.0, "j", "n", dear)]
    assert list(recorder.specified(dear, "ordered", 3.0)) == []
    assert list(recorder.specified(dear, "greedy", 4.0)) == [Specified(4.0, "j", "n", dear, "greedy")]
    assert len(list(Recorder("j", "n").specified(dear, "greedy", 5.0))) == 1, "another controller"


def test_a_wait_is_recorded_once_for_each_cause_and_when_it_ends() -> None:
    job, recorder = SteppedJob().planned(), Recorder("j", "n", shown_after=1.5)
    seen: list[Waited] = []
    for pods, after in (([pending("w0")], 0.0), ([pending("w0")], 2.0), ([pending("w0")], 60.0), ([], 1.0)):
        job.see(attempt(1, head(), *pods) if pods else all_ready(1), after=after)
        seen += recorder.waits(job.spec, job.state, job.last_seen, job.now)
    assert [bool(waited.message) for waited in seen] == [True, False]
    assert seen[0].timer == "provisionTimeout"


def test_a_notice_is_recorded_once_for_each_pod() -> None:
    recorder = Recorder("j", "n")
    for pods, wanted in (
        ([noticed("w0", START + 9), worker("w1")], ["w0"]),
        ([noticed("w0", START + 9), noticed("w1")], ["w1"]),
        ([noticed("w0", START + 9), noticed("w1")], []),
    ):
        found = list(recorder.observed(RUNNING, RUNNING, Observation(1, (attempt(1, *pods),))))
        assert [one.node for one in found if isinstance(one, NodeChanged)] == wanted


@pytest.mark.parametrize(("step", "recorded"), [(0, False), (39, False), (40, True), (50, True)])
def test_a_heartbeat_from_before_the_newest_commit_is_not_recorded(step: int, recorded: bool) -> None:
    state = replace(RUNNING, progress=Progress(40, 100, START, 1))
    seen = Observation(1, (attempt(1, step=step, total=100),))
    beats = [one for one in Recorder("j", "n").observed(state, state, seen) if isinstance(one, Beat)]
    assert beats == ([Beat(START, 1, step, 100)] if recorded else [])


def test_a_start_of_the_program_and_its_number_of_workers_are_recorded() -> None:
    after = replace(RUNNING, progress=Progress(attempt=1, workers=3, start=4))
    found = list(Recorder("j", "n").observed(RUNNING, after, Observation(1)))
    assert found == [DriverStarted(START, 1), Resized(START, 1, 3, 4)]
    grown = replace(RUNNING, progress=Progress(attempt=1, workers=4, start=9))
    found = list(Recorder("j", "n").observed(after, grown, Observation(1)))
    assert found == [DriverStarted(START, 1), Resized(START, 1, 4, 4, before=3)]
    assert grown.attempt is not None
    following = replace(grown, attempt=replace(grown.attempt, number=2), progress=Progress(attempt=2, workers=3))
    assert list(Recorder("j", "n").observed(grown, following, Observation(1))) == [Resized(START, 2, 3, 4)]


def test_the_costs_of_earlier_attempts_are_added_up_until_they_are_recorded() -> None:
    job = spec(priced("spot-a", 1.0, 4.0))
    state = JobState(left=(LeftAttempt(1, "spot-a", START, 2),), tier="spot-a", clock=START)
    recorder = Recorder("j", "n")
    for now in (START + 1800, START + 3600):
        recorder.charge(job, state, now)
        state = account(state, job, now)
    (left,) = recorder.billed(state, state.clock).left
    assert (left.attempt, left.spent, left.on_demand) == (1, 2.0, 8.0)
    assert recorder.billed(state, state.clock).left == ()


def test_the_end_is_recorded_once_with_its_exit_code() -> None:
    failed = replace(RUNNING, stage=Stage.FAILED, reason=Reason.TIERS_EXHAUSTED, message="why")
    recorder = Recorder("j", "n")
    assert list(recorder.ended(RUNNING, failed, 5.0)) == [Ended(5.0, 3, Reason.TIERS_EXHAUSTED, "why")]
    assert list(recorder.ended(failed, failed, 6.0)) == []
