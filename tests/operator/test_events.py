"""What Events say, and what can be read back from them."""

from __future__ import annotations

import pytest

from spotladder.core.model import Decision, JobState, Loss
from spotladder.core.reasons import Cause
from spotladder.operator.events import loss_of, notes_of

LOSS = Loss("digits-a001-worker-x7k2 (node gone)", Cause.NODE_LOST, 12, "spot-a")


def test_a_failure_is_read_back_as_it_was() -> None:
    (note,) = notes_of(Decision(JobState(), losses=(LOSS,)))
    assert loss_of(note.reason, note.action, note.message) == LOSS


@pytest.mark.parametrize(
    ("reason", "action", "message"),
    [
        ("NodeLost", "Ending", "attempt 1 on spot-a lost x"),
        ("FellBack", "Count", "attempt 1 on spot-a lost x"),
        ("NodeLost", "Count", "attempt one on spot-a lost x"),
        ("", "", ""),
    ],
)
def test_nothing_else_is_one(reason: str, action: str, message: str) -> None:
    assert loss_of(reason, action, message) is None
