"""The text of Events, and the failures that are parsed from them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.model import Decision, JobState, Loss, Move, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.custom_resources.loss_events import loss_of
from spotladder.operator.reporting.events import notes_of

LOSS = Loss("digits-a001-worker-x7k2 (node gone)", Cause.NODE_LOST, 12, "spot-a")


@pytest.mark.parametrize(("noticed", "verb"), [(False, "lost"), (True, "will lose")])
def test_a_failure_is_parsed_from_its_event(noticed: bool, verb: str) -> None:
    loss = replace(LOSS, noticed=noticed)
    (note,) = notes_of(Decision(JobState(), losses=(loss,)))
    assert note.message == f"attempt 12 on spot-a {verb} digits-a001-worker-x7k2 (node gone)"
    assert loss_of(note.reason, note.action, note.message) == loss


@pytest.mark.parametrize(
    ("target", "deleting", "reason", "message"),
    [
        (Stage.SUSPENDED, False, "SuspendRequested", "attempt 3 on spot-a"),
        (Stage.SUSPENDED, True, "DeleteRequested", "all objects of the job are gone; it is deleted"),
        (
            Stage.DRAINING,
            True,
            "DeleteRequested",
            "attempt 3 on spot-a: the job is deleted; the attempt commits and stops",
        ),
    ],
)
def test_events_of_a_deleted_job_have_reason_delete_requested(
    target: Stage, deleting: bool, reason: str, message: str
) -> None:
    move = Move(Stage.RUNNING, target, Reason.SUSPEND_REQUESTED, 3, "spot-a")
    (note,) = notes_of(Decision(JobState(), moves=(move,)), deleting=deleting)
    assert (note.reason, note.message, note.kind) == (reason, message, "Normal")


def test_the_end_of_an_attempt_has_no_event_if_the_next_attempt_begins_at_once() -> None:
    gone = Move(Stage.ENDING, Stage.IDLE, Reason.GONE, 1, "spot-a")
    begins = Move(Stage.IDLE, Stage.STARTING, Reason.FELL_BACK, 2, "spot-b", "attempt 2 on spot-b, from spot-a")
    assert [note.reason for note in notes_of(Decision(JobState(), moves=(gone,)))] == ["Gone"]
    assert [note.reason for note in notes_of(Decision(JobState(), moves=(gone, begins)))] == ["FellBack"]


@pytest.mark.parametrize(
    ("reason", "action", "message"),
    [
        ("NodeLost", "Ending", "attempt 1 on spot-a lost x"),
        ("FellBack", "Count", "attempt 1 on spot-a lost x"),
        ("NodeLost", "Count", "attempt one on spot-a lost x"),
        ("", "", ""),
    ],
)
def test_other_events_are_not_parsed_as_failures(reason: str, action: str, message: str) -> None:
    assert loss_of(reason, action, message) is None
