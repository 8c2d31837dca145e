"""The runner's loop (persistence, records, stop and resume) with the fake backend and a stepped clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from spotladder.core.model import (
    Delete,
    Drain,
    Exit,
    Finish,
    JobSpec,
    JobState,
    Launch,
    Observation,
    Progress,
    Stage,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.errors import EnvironmentFailure, StoreUnavailable
from spotladder.local.runner import Killed, end_interrupted_attempt
from spotladder.records.model import Beat, Billed, Committed, Ended, Lost, Moved, Noted, Record, Waited
from tests.local.runner_rig import BEGAN, SPEC, RunnerRig, comes_up, ends, sleeps, stop


@pytest.mark.parametrize(
    ("spec", "script", "code"),
    [
        pytest.param(SPEC, [(2, comes_up(1)), (3, ends(1, Exit.FAILED))], 1, id="the program failed"),
        pytest.param(SPEC, [], 3, id="no tier has capacity"),
        pytest.param(replace(SPEC, max_duration=5.0), [(2, comes_up(1)), (6, ends(1, Exit.LOST))], 4, id="deadline"),
        pytest.param(
            replace(SPEC, budget=4.0), [(2, comes_up(1)), (5, ends(1, Exit.INTERRUPTED))], 4, id="budget is spent"
        ),
        pytest.param(replace(SPEC, backoff_limit=0), [(2, comes_up(1)), (3, ends(1, Exit.LOST))], 1, id="backoff"),
    ],
)
def test_exit_codes(spec: JobSpec, script: list[tuple[float, Callable[[RunnerRig], None]]], code: int) -> None:
    rig = RunnerRig(spec, list(script))
    assert rig.run() == code
    assert rig.runner.state.stage is Stage.FAILED
    assert rig.backend.finished is not None
    assert not rig.backend.finished.succeeded


@pytest.mark.parametrize(("last_exit", "code"), [(5, 5), (1, 1), (2, 1), (None, 1)])
def test_a_program_that_fails_with_exit_code_5_ends_the_run_with_5(last_exit: int | None, code: int) -> None:
    rig = RunnerRig(script=[(2, comes_up(1)), (3, ends(1, Exit.FAILED))])
    rig.backend.last_exit = last_exit
    assert rig.run() == code


@pytest.mark.parametrize("at", [1, 5], ids=["while the job waits", "while it trains"])
def test_the_time_in_which_the_machine_sleeps_does_not_count(at: float) -> None:
    """A laptop that is closed for a night."""
    rig = RunnerRig(script=[(at, sleeps(5000)), (5003, comes_up(1)), (5010, ends(1, Exit.SUCCEEDED))])
    if at > 2:
        rig.script.insert(0, (2, comes_up(1)))
        del rig.script[2]
    assert rig.run() == 0
    state = rig.runner.state
    assert (state.failures, state.last_number) == (0, 1)
    assert state.spent_usd < 2 * 20
    assert [record.text for record in rig.of(Noted) if "slept" in record.text] == [
        "this machine slept for 1h 23m: that time costs nothing, and no timeout counts it"
    ]


def test_a_waiting_job_reports_each_change_of_the_cause_once() -> None:
    """A pool without nodes: the user sees the cause and the end of the wait within two seconds."""
    rig = RunnerRig()
    launch = rig.backend.launch

    def without_nodes(action: Launch) -> None:
        launch(action)
        why = f"the pool of {action.tier} has 0 nodes"
        rig.backend.explain(action.attempt, why)

    rig.backend.launch = without_nodes  # type: ignore[method-assign]
    assert rig.run() == 3
    waits = rig.of(Waited)
    first = Waited(
        pytest.approx(BEGAN + 1.6, abs=0.2),  # type: ignore[arg-type]
        "pods wait for nodes and images: the pool of spot-a has 0 nodes",
        pytest.approx(BEGAN, abs=0.2),  # type: ignore[arg-type]
        "provisionTimeout",
        pytest.approx(BEGAN + 30, abs=0.2),  # type: ignore[arg-type]
        "the job leaves the tier",
    )
    assert waits[0] == first
    causes = [f"pods wait for nodes and images: the pool of {name} has 0 nodes" for name in ("spot-a", "on-demand")]
    assert [record.message for record in waits if record.message] == causes
    shown = [snapshot.waits for snapshot in rig.snapshots if BEGAN + 20 <= snapshot.now < BEGAN + 20.2]
    assert shown[0].endswith("has 0 nodes (for 20s; provisionTimeout in 10s: the job leaves the tier)")


def test_a_job_whose_log_another_owner_has_ends_fenced() -> None:
    def taken(rig: RunnerRig) -> None:
        rig.backend.progress = Progress(step=5, total=9, attempt=4)
        rig.backend.end_program(1, Exit.FENCED)

    assert RunnerRig(script=[(2, comes_up(1)), (3, taken)]).run() == 76


def test_every_action_is_persisted_before_it_is_executed() -> None:
    rig = RunnerRig(script=[(2, comes_up(1)), (4, lambda rig: rig.backend.notice("a1-w1", BEGAN + 9)), (5, _drained)])
    backend, save = rig.backend, rig.save

    def checked(rig: RunnerRig, action: Launch | Drain | Delete | Finish) -> None:
        state = rig.saved[-1]
        match action:
            case Launch():
                assert state.stage is Stage.STARTING
                assert state.attempt is not None
                assert (state.attempt.number, state.attempt.tier) == (action.attempt, action.tier)
            case Drain():
                assert state.stage is Stage.DRAINING
            case Delete():
                left = {attempt.number for attempt in state.left}
                assert state.attempt is None or state.stage is Stage.ENDING or action.attempt in left
            case Finish():
                assert state.stage is Stage.SUCCEEDED

    assert save is not None
    for name in ("launch", "drain", "delete", "finish"):
        original = getattr(backend, name)

        def call(action: Launch | Drain | Delete | Finish, original: Callable[[object], None] = original) -> None:
            checked(rig, action)
            original(action)

        setattr(backend, name, call)
    rig.script += [(12, comes_up(2)), (14, ends(2, Exit.SUCCEEDED))]
    assert rig.run() == 0
    assert {type(action) for action in backend.calls} == {Launch, Drain, Delete, Finish}


def _drained(rig: RunnerRig) -> None:
    rig.backend.end_program(1, Exit.INTERRUPTED)


def test_every_move_and_loss_is_recorded_once_with_its_count() -> None:
    rig = RunnerRig(
        script=[
            (1, comes_up(1)),
            (3, lambda rig: rig.backend.lose("a1-w1", Cause.INTERRUPTION)),
            (9, comes_up(2)),
            (12, ends(2, Exit.SUCCEEDED)),
        ]
    )
    rig.run()
    moves = [record.move for record in rig.of(Moved)]
    assert [move.reason for move in moves].count(Reason.FELL_BACK) == 1
    (lost,) = rig.of(Lost)
    assert (lost.loss.pod, lost.loss.cause, lost.failures) == ("a1-w1", Cause.INTERRUPTION, 1)


def test_heartbeats_commits_costs_and_errors_are_recorded() -> None:
    commit = Committed(BEGAN, 1, "spot-a", 20)
    rig = RunnerRig(
        script=[(1, comes_up(1)), (5, ends(1, Exit.SUCCEEDED))],
        new_commits=[commit],
        error="the bucket is unavailable",
    )
    rig.run()
    assert rig.of(Committed) == [commit]
    assert rig.of(Beat) == [Beat(BEGAN, 1, 7)], "an unchanged heartbeat is recorded once"
    (noted,) = rig.of(Noted)
    assert "the bucket is unavailable" in noted.text
    bill = rig.of(Billed)[-1]
    assert bill.spent == pytest.approx(8, abs=0.5), "two nodes for four seconds"
    assert bill.on_demand == pytest.approx(2 * bill.spent)


def test_a_bucket_outage_and_its_end_are_recorded() -> None:
    def away(rig: RunnerRig) -> None:
        rig.backend.lose_store(1, rig.now, "refused")

    def back(rig: RunnerRig) -> None:
        rig.backend.lose_store(1, None)

    rig = RunnerRig(script=[(1, comes_up(1)), (2, away), (12, back), (13, ends(1, Exit.SUCCEEDED))])
    assert rig.run() == 0
    texts = [record.text for record in rig.of(Noted)]
    assert texts == [
        "the checkpoint store does not answer (refused): training continues and commits later",
        "the checkpoint store answers again, after 10s",
    ]


def test_the_end_of_an_attempt_does_not_end_the_outage_of_the_bucket() -> None:
    def away(rig: RunnerRig) -> None:
        rig.backend.lose_store(1, rig.now, "the disk is full")

    rig = RunnerRig(script=[(1, comes_up(1)), (2, away), (5, stop), (8, ends(1, Exit.INTERRUPTED))])
    assert rig.run() == 75
    texts = [record.text for record in rig.of(Noted) if "store" in record.text]
    assert texts == ["the checkpoint store does not answer (the disk is full): training continues and commits later"]


def test_skipped_commits_are_recorded_once() -> None:
    skipped = "step 20 was not resumed from: a file is missing"

    def committed(step: int) -> Callable[[RunnerRig], None]:
        return lambda rig: setattr(rig.backend, "progress", Progress(step, 100, BEGAN + step, 1, skipped))

    rig = RunnerRig(script=[(1, comes_up(1)), (2, committed(10)), (3, committed(11)), (5, ends(1, Exit.SUCCEEDED))])
    rig.run()
    assert [record.text for record in rig.of(Noted)] == [skipped]


def test_a_loss_before_the_first_commit_is_recorded_with_a_note() -> None:
    rig = RunnerRig(
        script=[
            (1, comes_up(1)),
            (2, lambda rig: rig.backend.lose("a1-w1")),
            (10, comes_up(2)),
            (12, ends(2, Exit.SUCCEEDED)),
        ]
    )
    rig.run()
    (noted,) = rig.of(Noted)
    assert noted.text == "nothing was committed before this loss: the job restarts at step 0"


def test_a_notice_before_the_first_commit_is_recorded_without_a_note() -> None:
    """The program commits within the notice, and the next attempt resumes there."""
    rig = RunnerRig(
        script=[
            (1, comes_up(1)),
            (2, lambda rig: rig.backend.notice("a1-w1", rig.now + 5)),
            (10, comes_up(2)),
            (12, ends(2, Exit.SUCCEEDED)),
        ]
    )
    rig.run()
    assert rig.of(Noted) == []


def test_a_program_without_the_library_is_recorded_once() -> None:
    def uses_nothing(rig: RunnerRig) -> None:
        rig.backend.bring_up(1)
        rig.backend.progress = Progress()  # The log has no start entry.

    rig = RunnerRig(replace(SPEC, stall_timeout=5.0), script=[(1, uses_nothing), (10, ends(1, Exit.SUCCEEDED))])
    assert rig.run() == 0
    (noted,) = rig.of(Noted)
    assert noted.at == pytest.approx(BEGAN + 6, abs=0.5)
    assert "does not use spotladder.train" in noted.text
    assert rig.runner.state.failures == 0, "a program that lives does not count as stalled"


def test_the_last_commit_is_recorded_before_the_end_of_the_job() -> None:
    commit = Committed(BEGAN, 1, "spot-a", 20)

    def finishes(rig: RunnerRig) -> None:
        rig.backend.end_program(1, Exit.SUCCEEDED)
        rig.new_commits.append(commit)

    rig = RunnerRig(script=[(1, comes_up(1)), (5, finishes)])
    rig.run()
    ended = next(each for each in rig.of(Moved) if each.move.reason is Reason.COMPLETED)
    assert rig.records.index(commit) < rig.records.index(ended)


def test_a_bucket_outage_at_the_end_does_not_change_the_exit_code() -> None:
    rig = RunnerRig(script=[(1, comes_up(1)), (2, ends(1, Exit.SUCCEEDED))])
    forget, rig.backend.finish = rig.backend.finish, None  # type: ignore[method-assign, assignment]

    def finish(action: Finish) -> None:
        forget(action)
        raise StoreUnavailable("the bucket is unavailable")

    rig.backend.finish = finish  # type: ignore[method-assign]
    assert rig.run() == 0
    assert any("the bucket is unavailable" in record.text for record in rig.of(Noted))


def test_the_first_ctrl_c_drains_and_the_run_can_be_resumed() -> None:
    rig = RunnerRig(script=[(1, comes_up(1)), (3, stop), (4, _drained)])
    assert rig.run() == 75
    assert rig.runner.state.stage is Stage.SUSPENDED
    assert rig.backend.observe().attempts == ()
    assert rig.runner.state.history[-1].reason is Reason.STOP_REQUESTED, "spec.suspend is not set"
    reasons = [record.move.reason for record in rig.of(Moved)]
    assert reasons[-4:] == [Reason.STOP_REQUESTED, Reason.DRAINED, Reason.GONE, Reason.STOP_REQUESTED]
    assert (rig.snapshots[0].hint, rig.snapshots[0].doing) == ("Ctrl-C drains and commits", "Ray starts")
    assert any(snapshot.hint == "Ctrl-C again kills" for snapshot in rig.snapshots)
    again = RunnerRig(script=[(1, comes_up(2)), (3, ends(2, Exit.SUCCEEDED))])
    assert again.run(rig.saved[-1]) == 0
    assert again.runner.state.failures == 0
    assert [record.number for record in again.runner.state.history] == [1, 2]


def test_the_second_ctrl_c_ends_the_run_at_once() -> None:
    rig = RunnerRig(script=[(1, comes_up(1)), (3, stop), (3.5, stop)])
    with pytest.raises(Killed):
        rig.run()
    assert rig.now < BEGAN + 4
    assert rig.saved[-1].stage is Stage.DRAINING
    ended = rig.records[-1]
    assert isinstance(ended, Ended)
    assert (ended.exit_code, ended.reason) == (75, Reason.INTERRUPTED), "not the reason of the last move"


def test_an_environment_failure_ends_the_run_as_interrupted() -> None:
    rig = RunnerRig(script=[(1, comes_up(1)), (3, lambda rig: setattr(rig.backend, "observe", full))])

    def full() -> Observation:
        raise EnvironmentFailure("the disk is full")

    with pytest.raises(EnvironmentFailure):
        rig.run()
    ended = rig.records[-1]
    assert isinstance(ended, Ended)
    assert (ended.exit_code, ended.reason, ended.message) == (5, Reason.INTERRUPTED, "the disk is full")


def test_a_timeline_that_cannot_be_written_does_not_hide_the_cause_of_the_end() -> None:
    rig = RunnerRig(script=[(1, comes_up(1)), (3, stop), (3.5, stop)])
    emit = rig.runner._emit

    def refuse(record: Record) -> None:
        if isinstance(record, Ended):
            raise EnvironmentFailure("the disk is full")
        emit(record)

    rig.runner._emit = refuse
    with pytest.raises(Killed):
        rig.run()


@pytest.mark.parametrize("stage", [Stage.STARTING, Stage.RUNNING, Stage.RECOVERING, Stage.DRAINING, Stage.ENDING])
def test_a_killed_runner_counts_no_failure_and_no_cost_until_the_next_run(stage: Stage) -> None:
    before = _killed_in(stage)
    assert before.stage is stage
    state, moves = end_interrupted_attempt(SPEC, before, Progress(), before.clock + 2)
    assert state.stage is Stage.IDLE
    assert state.attempt is None
    assert moves
    assert Reason.STOP_REQUESTED not in [move.reason for move in moves if stage is not Stage.DRAINING]
    assert state.failures == before.failures
    assert state.spent_usd == pytest.approx(before.spent_usd + 2 * before.nodes), "one dollar per node and second"
    number = state.last_number + 1
    rig = RunnerRig(script=[(3600, comes_up(number)), (3601, ends(number, Exit.SUCCEEDED))], now=BEGAN + 3599)
    assert rig.run(state) == 0
    assert rig.saved[1].spent_usd == state.spent_usd
    assert [record.reason for record in rig.runner.state.history][-1] is Reason.COMPLETED


def _killed_in(stage: Stage) -> JobState:
    """The stored state of a runner that was killed in this stage."""

    class Kill(Exception):
        pass

    def kill(rig: RunnerRig) -> None:
        if rig.saved[-1].stage is stage:
            raise Kill

    script: list[tuple[float, Callable[[RunnerRig], None]]] = [(1.0, kill), (2.0, comes_up(1)), (3.0, kill)]
    if stage is Stage.RECOVERING:
        script += [(4.0, lambda rig: rig.backend.lose("a1-w1")), (5.0, kill)]
    else:
        script += [(4.0, stop), (5.0, kill)]
    spec = replace(SPEC, tiers=(replace(SPEC.tiers[0], max_failures=3), SPEC.tiers[1]))
    rig = RunnerRig(spec, script)
    if stage is Stage.ENDING:
        rig.backend.keeps_deleted = {1}
        rig.script += [(6.0, _drained), (7.0, kill)]
    with pytest.raises(Kill):
        rig.run()
    return rig.saved[-1]
