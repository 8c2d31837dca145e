"""Where the time of a restart goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.contract import Milestone
from spotladder.core.model import JobSpec, Loss, Move, Stage, Tier
from spotladder.core.reasons import Cause, Reason
from spotladder.records.model import (
    Beat,
    Began,
    Committed,
    Launched,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Reached,
    Record,
    Resized,
)
from spotladder.records.restarts import Restart, average, restarts


def moved(at: float, source: Stage, target: Stage, attempt: int, reason: Reason = Reason.STEADY) -> Moved:
    return Moved(at, Move(source, target, reason, attempt, f"tier-{attempt}"))


def lost(at: float, *, noticed: bool = False, attempt: int = 1) -> Lost:
    return Lost(at, Loss("w1", Cause.INTERRUPTION, attempt, f"tier-{attempt}", noticed), 1)


def named(restart: Restart) -> dict[str, float]:
    return {part.name: part.seconds for part in restart.parts}


BEGUN: tuple[Record, ...] = (
    moved(0, Stage.IDLE, Stage.STARTING, 1, Reason.STARTED),
    moved(5, Stage.STARTING, Stage.RUNNING, 1),
    Beat(9, 1, 20),
    Committed(10, 1, "tier-1", 20),
)
NOTICED: tuple[Record, ...] = (
    lost(100, noticed=True),
    moved(101, Stage.RUNNING, Stage.DRAINING, 1),
    Committed(104, 1, "tier-1", 200),
    moved(105, Stage.DRAINING, Stage.ENDING, 1),
    moved(107, Stage.ENDING, Stage.IDLE, 1),
    moved(107, Stage.IDLE, Stage.STARTING, 2, Reason.FELL_BACK),
)
STARTED: tuple[Record, ...] = tuple(
    Reached(at, 2, milestone)
    for at, milestone in (
        (108, Milestone.LAUNCHED),
        (111, Milestone.SCHEDULED),
        (120, Milestone.CONTAINERS),
        (124, Milestone.PROGRAM),
        (129, Milestone.IMPORTED),
        (130, Milestone.JOINED),
        (136, Milestone.RESTORED),
        (138, Milestone.STEPPED),
    )
)


def test_a_fallback_after_a_notice_has_all_parts() -> None:
    (found,) = restarts([*BEGUN, *NOTICED, *STARTED, Beat(140, 2, 210)])
    assert (found.attempt, found.tier, found.reason, found.noticed) == (2, "tier-2", Reason.FELL_BACK, True)
    assert found.complete
    assert found.seconds == 38
    assert named(found) == {
        "decision": 1, "last commit": 3, "end of the attempt": 3, "wait for a tier": 0, "launch": 1, "nodes": 3,
        "image and container": 9, "start of the program": 4, "imports": 5, "connection of ranks": 1, "checkpoint": 6,
        "first step": 2,
    }  # fmt: skip


def test_what_was_not_observed_is_absent_and_its_time_belongs_to_the_next_part() -> None:
    seen = [record for record in STARTED if isinstance(record, Reached) and record.milestone is Milestone.CONTAINERS]
    (found,) = restarts([*BEGUN, *NOTICED, *seen])
    assert named(found)["image and container"] == 13
    assert not found.complete
    assert not named(found).keys() & {"launch", "nodes", "checkpoint", "first step"}


def test_a_run_on_this_machine_has_the_parts_that_exist_there() -> None:
    def up(at: float, node: str) -> NodeChanged:
        return NodeChanged(at, node, 2, "tier-2", NodeChange.UP)

    program = Reached(114, 2, Milestone.PROGRAM)
    run = [*BEGUN, *NOTICED, Launched(108, 2, "tier-2"), up(111, "a"), up(113, "b"), program, up(150, "c")]
    (found,) = restarts([*run, Beat(116, 2, 200), Beat(118, 2, 205)])
    after = {name: seconds for name, seconds in named(found).items() if name not in ("decision", "last commit")}
    assert after == {
        "end of the attempt": 3, "wait for a tier": 0, "launch": 1, "nodes": 5, "start of the program": 1,
        "first step": 4,
    }  # fmt: skip


def test_a_loss_from_which_the_attempt_recovers_belongs_to_no_restart() -> None:
    recovered: tuple[Record, ...] = (
        lost(30),
        moved(30, Stage.RUNNING, Stage.RECOVERING, 1),
        moved(50, Stage.RECOVERING, Stage.RUNNING, 1),
        lost(60),
        Resized(61, 1, 3, 4, 4),
    )
    (found,) = restarts([*BEGUN, *recovered, *NOTICED, *STARTED])
    assert found.seconds == 38


def test_a_loss_without_a_replacement_is_decided_when_the_attempt_is_given_up() -> None:
    left: tuple[Record, ...] = (
        lost(100),
        moved(100, Stage.RUNNING, Stage.RECOVERING, 1),
        moved(115, Stage.RECOVERING, Stage.ENDING, 1),
        moved(116, Stage.ENDING, Stage.IDLE, 1),
        moved(116, Stage.IDLE, Stage.STARTING, 2, Reason.FELL_BACK),
    )
    (found,) = restarts([*BEGUN, *left])
    assert named(found) == {"decision": 15, "end of the attempt": 1, "wait for a tier": 0}
    assert not found.noticed


def test_the_boot_of_a_standby_attempt_before_the_loss_takes_no_time() -> None:
    booted = [replace(record, at=record.at - 50) for record in STARTED[:6]]
    (found,) = restarts([*BEGUN, *booted, *NOTICED, *STARTED[6:]])
    assert named(found) == {
        "decision": 1, "last commit": 3, "end of the attempt": 3, "wait for a tier": 0, "checkpoint": 29,
        "first step": 2,
    }  # fmt: skip


def test_an_attempt_that_never_trained_is_a_restart_of_its_own() -> None:
    again: tuple[Record, ...] = (
        moved(200, Stage.STARTING, Stage.ENDING, 2),
        moved(201, Stage.ENDING, Stage.IDLE, 2),
        moved(260, Stage.IDLE, Stage.STARTING, 3),
        Committed(290, 3, "tier-3", 300),
    )
    second, third = restarts([*BEGUN, *NOTICED, *again])
    assert not second.complete
    assert named(third) == {"decision": 0, "end of the attempt": 1, "wait for a tier": 59, "first step": 30}


def test_a_pause_until_the_job_is_resumed_belongs_to_no_restart() -> None:
    stopped: tuple[Record, ...] = (
        moved(100, Stage.RUNNING, Stage.DRAINING, 1, Reason.STOP_REQUESTED),
        Committed(104, 1, "tier-1", 200),
        moved(107, Stage.ENDING, Stage.IDLE, 1),
        moved(107, Stage.IDLE, Stage.SUSPENDED, 1),
    )
    resumed: tuple[Record, ...] = (
        moved(50_000, Stage.SUSPENDED, Stage.IDLE, 1, Reason.RESUME_REQUESTED),
        moved(50_001, Stage.IDLE, Stage.STARTING, 2),
        Reached(50_020, 2, Milestone.STEPPED),
    )
    (found,) = restarts([*BEGUN, *stopped, *resumed])
    assert (found.complete, found.seconds) == (True, 20)


def test_the_time_without_a_runner_belongs_to_no_restart() -> None:
    killed = moved(100, Stage.RUNNING, Stage.IDLE, 1, Reason.INTERRUPTED)
    resumed = (
        Began(50_000, "digits", "default", JobSpec((Tier("tier-1"),)), resumed=True),
        moved(50_001, Stage.IDLE, Stage.STARTING, 2),
        Reached(50_020, 2, Milestone.STEPPED),
    )
    for ended in ((), (killed,)):
        (found,) = restarts([*BEGUN, *ended, *resumed])
        assert (found.complete, found.seconds) == (True, 20)


@pytest.mark.parametrize("at", [90.0, 137.0])
def test_clocks_that_differ_give_no_negative_part(at: float) -> None:
    skewed = [replace(record, at=at) for record in STARTED[4:5]]
    (found,) = restarts([*BEGUN, *NOTICED, *STARTED[:4], *skewed, *STARTED[5:]])
    assert all(part.seconds >= 0 for part in found.parts)
    assert found.seconds == 38


def test_the_means_of_the_parts_add_up_to_the_mean_restart() -> None:
    found = restarts([*BEGUN, *NOTICED, *STARTED])
    short = replace(found[0], parts=found[0].parts[:2])
    assert dict(average([*found, short])) == named(found[0])
    assert average([short]) == []


def test_without_records_there_is_no_restart() -> None:
    assert restarts([]) == ()
    assert restarts(BEGUN) == ()
