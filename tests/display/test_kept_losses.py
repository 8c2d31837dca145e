"""The losses of a job on a cluster, from its state and from what is left of its Events."""

from __future__ import annotations

import pytest

from spotladder.core.model import AttemptRecord, Loss, LossRecord, Move, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.display.kept_losses import NAMELESS, recoveries, with_kept
from spotladder.display.records import Lost, Moved, Noted


def event(at: float, pod: str, attempt: int = 1, *, noticed: bool = False) -> Lost:
    return Lost(at, Loss(pod, Cause.INTERRUPTION, attempt, "spot", noticed=noticed), 0)


def kept(at: float, pods: int = 1, *, noticed: bool = False, ready_at: float | None = None) -> LossRecord:
    return LossRecord(at, 1, "spot", Cause.INTERRUPTION, pods, pods, noticed, ready_at)


def test_each_loss_of_the_state_is_in_the_record_once_with_the_name_from_its_event() -> None:
    noted = event(10.2, "a"), event(10.2, "b"), event(60.7, "c")
    found = with_kept((kept(10.0, pods=2), kept(60.5)), noted)
    assert sorted(found, key=lambda one: one.at) == [event(10.0, "a"), event(10.0, "b"), event(60.5, "c")]


def test_without_events_the_pods_of_a_loss_have_no_names() -> None:
    found = with_kept((kept(10.0, pods=2), kept(60.5, noticed=True)), ())
    assert found[1:] == [event(10.0, NAMELESS), event(10.0, NAMELESS)]
    assert found[0] == event(60.5, NAMELESS, noticed=True)


def test_a_late_event_does_not_name_another_loss() -> None:
    noted = event(60.7, "c"), event(61.0, "other", 2), event(61.0, "soon", noticed=True)
    assert with_kept((kept(10.0), kept(60.5)), noted) == [event(60.5, "c"), event(10.0, NAMELESS)]


def test_events_before_the_losses_of_the_state_are_losses_as_well() -> None:
    """An older version of the controller did not keep losses, or the state has only the newest."""
    note = Noted(70.0, "Recovering: attempt 1 on spot")
    assert with_kept((kept(60.0),), (note, event(5.0, "a"))) == [event(5.0, "a"), note, event(60.0, NAMELESS)]
    assert with_kept((), (event(5.0, "a"),)) == [event(5.0, "a")]


def moves(*losses: LossRecord, running_at: float | None = 100.0, reason: Reason = Reason.COMPLETED) -> list[Moved]:
    attempt = AttemptRecord(1, "spot", 0.0, running_at, 900.0, reason, 1, 0, 9)
    return list(recoveries(losses, attempt))


def moved(at: float, source: Stage, target: Stage, reason: Reason) -> Moved:
    return Moved(at, Move(source, target, reason, 1, "spot"))


def test_an_attempt_recovers_once_from_losses_until_all_workers_are_ready() -> None:
    assert moves(kept(200.0, ready_at=500.0), kept(300.0, ready_at=500.0)) == [
        moved(200.0, Stage.RUNNING, Stage.RECOVERING, Reason.RECOVERING),
        moved(500.0, Stage.RECOVERING, Stage.RUNNING, Reason.ALL_READY),
    ]


def test_workers_with_a_notice_are_replaced_while_the_others_train() -> None:
    assert moves(kept(200.0, noticed=True, ready_at=500.0)) == [
        moved(200.0, Stage.RUNNING, Stage.REPLACING, Reason.REPLACING),
        moved(500.0, Stage.REPLACING, Stage.RUNNING, Reason.HANDED_OVER),
    ]


def test_no_recovery_follows_a_loss_during_the_start_or_one_that_ended_the_attempt() -> None:
    assert moves(kept(50.0, ready_at=100.0), kept(800.0)) == []
    assert moves(kept(50.0), running_at=None) == []
    assert moves(kept(800.0), reason=Reason.MAX_FAILURES_EXCEEDED) == []


@pytest.mark.parametrize("reason", [Reason.RECOVERY_TIMEOUT, Reason.INSUFFICIENT_CAPACITY, Reason.HEDGED])
def test_an_attempt_that_waited_in_vain_was_not_ready_since_its_last_loss(reason: Reason) -> None:
    waits = moved(800.0, Stage.RUNNING, Stage.RECOVERING, Reason.RECOVERING)
    assert moves(kept(200.0, ready_at=500.0), kept(800.0), reason=reason)[2:] == [waits]
