"""A program whose heartbeats have stopped on nodes that are silent, before its cluster marks them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import AttemptSeen, Handover, Launch, PodRole, PodSeen, Stage
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import SteppedJob, attempt, head, spec, tier, worker
from tests.core.test_contact import cut_off


def suspect(uid: str, role: PodRole = PodRole.WORKER) -> PodSeen:
    return PodSeen(uid, role, suspect=True, node=f"node-of-{uid}")


def silent_gang(*, heartbeat_stopped: bool = True) -> AttemptSeen:
    pods = (suspect("head", PodRole.HEAD), suspect("w1-0"), suspect("w1-1"))
    return attempt(1, *pods, heartbeat_stopped=heartbeat_stopped)


def job(max_failures: int = -1, **more: Any) -> SteppedJob:
    made = SteppedJob(spec(tier("spot-a", max_failures), tier("on-demand", -1), **more)).running()
    made.progress = replace(made.progress, attempt=1)
    return made


def test_the_next_attempt_begins_at_once_when_all_nodes_are_silent_and_the_program_has_stopped() -> None:
    made = job()
    made.see(silent_gang(), after=1, suspects=frozenset({"node-of-head"}))
    assert [move.reason for move in made.moves[-3:]] == [Reason.HEAD_LOST, Reason.LEFT_BEHIND, Reason.STARTED]
    assert "node-of-head, node-of-w1-0, node-of-w1-1" in made.moves[-3].message
    assert {(loss.pod, loss.cause) for loss in made.losses} == {
        (name, Cause.NODE_LOST) for name in ("head", "w1-0", "w1-1")
    }
    decision = made.see(silent_gang(), after=0, suspects=frozenset({"node-of-head"}))
    launch = next(action for action in decision.actions if isinstance(action, Launch))
    assert (launch.attempt, launch.tier, launch.avoids) == (2, "spot-a", ("node-of-head",))
    failures = made.state.failures
    made.see(cut_off(), after=30)
    assert made.state.failures == failures, "their pods count once"


def test_a_silent_head_ends_the_attempt_and_waits_for_the_pods_that_live() -> None:
    made = job()
    made.see(attempt(1, suspect("head", PodRole.HEAD), worker("w1-0"), worker("w1-1"), heartbeat_stopped=True), after=1)
    assert (made.state.stage, made.reasons[-1], made.state.failures) == (Stage.ENDING, Reason.HEAD_LOST, 1)


def test_a_gang_without_a_head_ends_when_all_of_its_pods_are_silent() -> None:
    made = job()
    made.see(attempt(1, suspect("w1-0"), suspect("w1-1"), heartbeat_stopped=True), after=1)
    assert Reason.INTERRUPTED in [move.reason for move in made.moves]
    assert {"w1-0", "w1-1"} <= {loss.pod for loss in made.losses}


def test_failures_of_silent_nodes_are_bounded_as_those_of_lost_nodes() -> None:
    made = job(0)
    made.see(silent_gang(), after=1)
    assert Reason.MAX_FAILURES_EXCEEDED in [move.reason for move in made.moves]
    assert made.state.record("spot-a").exhausted_by is Reason.MAX_FAILURES_EXCEEDED


@pytest.mark.parametrize(
    ("wanted", "log", "seen"),
    [
        pytest.param({}, {}, silent_gang(heartbeat_stopped=False), id="the program lives"),
        pytest.param(
            {}, {}, attempt(1, head(), worker("w1-0"), worker("w1-1"), heartbeat_stopped=True), id="the nodes live"
        ),
        pytest.param(
            {}, {}, attempt(1, head(), suspect("w1-0"), worker("w1-1"), heartbeat_stopped=True), id="one worker"
        ),
        pytest.param({"handover": Handover.WHEN_GONE}, {}, silent_gang(), id="the log fences no program"),
        pytest.param({}, {"step": 100, "total": 100}, silent_gang(), id="the last step is committed"),
    ],
)
def test_one_sign_alone_ends_no_attempt(wanted: dict[str, Any], log: dict[str, Any], seen: AttemptSeen) -> None:
    made = job()
    made.edit(**wanted)
    made.progress = replace(made.progress, **log)
    made.see(seen, after=1)
    assert (made.state.stage, made.state.failures, made.number) == (Stage.RUNNING, 0, 1)


def test_marked_nodes_of_a_program_that_has_stopped_are_no_loss_of_contact() -> None:
    made = job(contact_timeout=100.0)
    made.see(cut_off(), after=1)
    assert (made.state.stage, made.state.failures) == (Stage.RUNNING, 0)
    made.see(cut_off(heartbeat_stopped=True), after=10)
    assert (made.reasons[-1], made.state.failures) == (Reason.HEAD_LOST, 3)


def test_an_attempt_that_recovers_has_no_heartbeats_that_prove_a_loss_of_its_nodes() -> None:
    made = job(contact_timeout=100.0)
    made.see(attempt(1, head(), worker("w1-0")), after=1)
    assert made.state.stage is Stage.RECOVERING
    made.see(cut_off(heartbeat_stopped=True), after=1)
    assert made.impeded.reason is Reason.CONTACT_LOST
