"""Timeline records as sentences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import (
    LeftAttempt,
    Loss,
    Move,
    Price,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.display.narrate import Narrator, Sentence, Tone, removal_text
from spotladder.display.view_state import RunSummary
from spotladder.records.model import (
    Beat,
    Began,
    Billed,
    Committed,
    DriverExited,
    Ended,
    Launched,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Noted,
    PoolChanged,
    Record,
    Resized,
    Specified,
    Waited,
)
from tests.core.builders import START
from tests.display.builders import SPEC


def described(record: Record) -> Sentence | None:
    """The sentence of the record in the timeline of a job with this spec."""
    narrator = Narrator()
    narrator.describe(Began(START, "j", "n", SPEC))
    return narrator.describe(record)


def moved(reason: Reason, target: Stage, message: str = "", source: Stage = Stage.RUNNING) -> Moved:
    return Moved(START, Move(source, target, reason, 2, "spot-a", message))


ALONE = replace(SPEC, workers=1)


KILLED = Loss("w1", Cause.OOM_KILLED, 2, "spot-a")


NOTICED = NodeChanged(START, "w1", 2, "spot-a", NodeChange.NOTICED, Cause.INTERRUPTION, START + 5)


@pytest.mark.parametrize(
    ("record", "tone", "text"),
    [
        (Began(START, "j", "n", SPEC), Tone.QUIET, "j begins: 2 workers on spot-a → spot-b → on-demand"),
        (Began(START, "j", "n", ALONE, True), Tone.QUIET, "j resumes: 1 worker on spot-a → spot-b → on-demand"),
        (moved(Reason.STARTED, Stage.STARTING, "attempt 2 on spot-a"), Tone.QUIET, "starts: attempt 2 on spot-a"),
        (moved(Reason.ALL_READY, Stage.RUNNING), Tone.GOOD, "attempt 2 has all workers ready"),
        (moved(Reason.ALL_READY, Stage.RUNNING, "3 of 4 workers"), Tone.GOOD, "attempt 2 is ready – 3 of 4 workers"),
        (moved(Reason.EVICTION_NOTICE, Stage.DRAINING), Tone.CAUTION, "attempt 2 drains: EvictionNotice"),
        (moved(Reason.STALLED, Stage.ENDING, "no commit"), Tone.BAD, "attempt 2 ends: Stalled – no commit"),
        (moved(Reason.INSUFFICIENT_CAPACITY, Stage.ENDING), Tone.BAD, "leaves spot-a: InsufficientCapacity"),
        (moved(Reason.POD_DOES_NOT_FIT, Stage.ENDING), Tone.BAD, "leaves spot-a: PodDoesNotFit"),
        (moved(Reason.POD_DOES_NOT_FIT, Stage.FAILED), Tone.BAD, "job Failed: PodDoesNotFit"),
        (moved(Reason.COMPLETED, Stage.SUCCEEDED), Tone.GOOD, "job Succeeded: Completed"),
        (moved(Reason.DEADLINE_EXCEEDED, Stage.DRAINING), Tone.BAD, "attempt 2 drains: DeadlineExceeded"),
        (Lost(START, KILLED, 1), Tone.BAD, "lost w1 (OOMKilled), failure 1 on spot-a (1 tolerated)"),
        (NOTICED, Tone.CAUTION, "w1 will be reclaimed in 5s (Interruption)"),
        (Resized(START, 2, 3, 4), Tone.CAUTION, "attempt 2 trains with 3 of 4 workers"),
        (Resized(START, 2, 4, 4), Tone.GOOD, "attempt 2 trains with 4 workers"),
        (Resized(START, 2, 3, 4, 4), Tone.CAUTION, "attempt 2 continues with 3 of 4 workers"),
        (Resized(START, 2, 3, 4, 2), Tone.CAUTION, "attempt 2 grew to 3 of 4 workers"),
        (Resized(START, 2, 4, 4, 3), Tone.GOOD, "attempt 2 grew to 4 workers"),
        (PoolChanged(START, "spot-b", False), Tone.CAUTION, "spot-b has no capacity"),
        (PoolChanged(START, "spot-b", True), Tone.QUIET, "spot-b has capacity again"),
        (Committed(START, 2, "a", 1234, 0, {"loss": 0.12345}), Tone.GOOD, "committed step 1\u202f234, loss 0.1235"),
        (DriverExited(START, 2, 75), Tone.QUIET, "attempt 2 has stopped and can be resumed (exit code 75)"),
        (DriverExited(START, 2, 76), Tone.CAUTION, "attempt 2 was fenced: a newer attempt owns the job"),
        (Noted(START, "stepped back"), Tone.CAUTION, "stepped back"),
        (Waited(START + 2, "pods wait", START), Tone.CAUTION, "waits: pods wait (for 2s)"),
        (
            Waited(START + 2, "pods wait", START, "provisionTimeout", START + 62, "the job leaves the tier"),
            Tone.CAUTION,
            "waits: pods wait (for 2s; provisionTimeout in 1m 00s: the job leaves the tier)",
        ),
        (Ended(START, 0, Reason.COMPLETED), Tone.GOOD, "done"),
        (Ended(START, 75, Reason.INTERRUPTED), Tone.CAUTION, "stopped, can be resumed"),
        (Ended(START, 5, Reason.INTERRUPTED, "a full disk"), Tone.BAD, "stopped, can be resumed: a full disk"),
        (Ended(START, 3, Reason.TIERS_EXHAUSTED, "all spent"), Tone.BAD, "failed: TiersExhausted: all spent"),
    ],
)
def test_a_record_is_described_in_a_sentence(record: Record, tone: Tone, text: str) -> None:
    event = described(record)
    assert event is not None
    assert (event.tone, event.text) == (tone, text)


@pytest.mark.parametrize(
    "record",
    [
        Launched(START, 1, "a"),
        Beat(START, 1, 1),
        Billed(START, 1.0, 1.0),
        NodeChanged(START, "w1", 1, "a", NodeChange.UP),
        DriverExited(START, 1, 0),
        DriverExited(START, 1, None),
        moved(Reason.GONE, Stage.IDLE, source=Stage.ENDING),
        moved(Reason.MOVED_ON, Stage.IDLE, source=Stage.ENDING),
        moved(Reason.DRAINED, Stage.ENDING, source=Stage.DRAINING),
    ],
)
def test_a_record_is_not_described_when_another_one_reports_the_same_fact(record: Record) -> None:
    assert described(record) is None


def test_the_cause_of_a_failed_job_is_reported_once() -> None:
    why = "exit code 1: ValueError: no data (train.py:5)"
    move = Move(Stage.RUNNING, Stage.FAILED, Reason.APPLICATION_FAILED, 1, "spot-a", why)
    summary = RunSummary()
    summary.add(Moved(START, move))
    summary.add(Ended(START, 1, Reason.APPLICATION_FAILED, why))
    assert [event.text for event in summary.events] == [
        f"job Failed: ApplicationFailed – {why}",
        "failed: ApplicationFailed",
    ]
    summary.add(Ended(START, 1, Reason.APPLICATION_FAILED, f"{why}; nothing was committed"))
    assert summary.events[-1].text == "failed: ApplicationFailed: nothing was committed"
    summary.add(Ended(START, 5, Reason.INTERRUPTED, "the disk is full"))
    assert summary.events[-1].text == "stopped, can be resumed: the disk is full"


def test_attempts_that_are_being_removed_are_named_with_the_nodes_that_are_still_paid() -> None:
    left = [LeftAttempt(1, "spot-a", START - 90, 1), LeftAttempt(2, "spot-b", START - 5)]
    assert removal_text(left, START) == (
        "attempt 1 on spot-a is being removed (1m 30s, 1 node); attempt 2 on spot-b is being removed (5s)"
    )
    assert removal_text([], START) == ""


def test_a_changed_spec_is_described_if_its_workers_or_tiers_have_changed() -> None:
    narrator = Narrator()
    narrator.describe(Began(START, "j", "n", SPEC))
    dear = replace(SPEC, tiers=(replace(SPEC.tiers[0], price=Price(9.0)), *SPEC.tiers[1:]))
    assert narrator.describe(Specified(START + 1, "j", "n", dear)) is None
    sentence = narrator.describe(Specified(START + 2, "j", "n", ALONE))
    assert sentence == Sentence(START + 2, Tone.QUIET, "spec changed: 1 worker on spot-a → spot-b → on-demand")
