"""Replacing pods before their nodes are reclaimed: the preconditions, the steps, and the fallbacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.changes.replacing import COMMIT_RESERVE
from spotladder.core.model import (
    AskToCommit,
    AttemptSeen,
    Decision,
    Drain,
    Exit,
    Handover,
    Measured,
    PodPhase,
    PodRole,
    PodSeen,
    Price,
    Progress,
    Replace,
    Stage,
    Tier,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import REMOVAL_DELAY
from tests.core.builders import START, SteppedJob, attempt, head, lost, noticed, pending, spec, tier, worker

NOTICE = 45.0


def job(first: Tier | None = None) -> SteppedJob:
    """A running job whose program can hand over."""
    made = SteppedJob(spec(first or tier("spot-a", 3), tier("on-demand", -1), grace=20.0)).running()
    made.progress = Progress(5, 100, START, 1, hands_over=True)
    return made


def seen(*pods: PodSeen, surplus: int | None = 0) -> AttemptSeen:
    return attempt(1, head(), *pods, surplus=surplus)


def give_notice(made: SteppedJob, **more: Any) -> Decision:
    return made.see(seen(noticed("w1-0", made.now + NOTICE), worker("w1-1"), **more), after=1)


def asked(decision: Decision) -> list[tuple[bool, bool]]:
    """For each Replace action: whether it hands the program over, and whether it removes the noticed pods."""
    return [(action.hand_over, action.remove) for action in decision.actions if isinstance(action, Replace)]


def test_a_notice_requests_a_replacement_pod_while_training_continues() -> None:
    made = job()
    decision = give_notice(made)
    assert (made.state.stage, made.state.phase) == (Stage.REPLACING, "Running")
    assert decision.actions == (
        AskToCommit(1, ("head", "w1-0"), Reason.EVICTION_NOTICE, START + 11),
        Replace(1, ("w1-0",), False, False, START + 10 + NOTICE - COMMIT_RESERVE),
    )
    assert [(loss.pod, loss.cause, loss.noticed) for loss in made.losses] == [("w1-0", Cause.INTERRUPTION, True)]
    assert decision.wake_at is not None


def test_the_program_continues_on_the_replacement_when_it_is_ready() -> None:
    made = job()
    give_notice(made)
    going = noticed("w1-0", START + NOTICE)
    made.see(seen(going, worker("w1-1"), pending("w1-2"), surplus=1), after=1)
    assert asked(made.last) == [(False, False)]
    made.see(seen(going, worker("w1-1"), worker("w1-2"), surplus=1), after=5)  # planned and persisted first
    assert made.last.actions == ()
    decision = made.see_again(after=0)
    assert asked(decision) == [(True, False)], "a pod that is being deleted cannot read the notice"
    assert decision.wake_at == made.now + REMOVAL_DELAY
    assert asked(made.see_again(after=REMOVAL_DELAY)) == [(True, True)]
    made.see(seen(worker("w1-1"), worker("w1-2")), after=3)
    assert (made.state.stage, made.state.failures, made.state.last_number) == (Stage.RUNNING, 1, 1)
    assert made.reasons[-2:] == [Reason.REPLACING, Reason.HANDED_OVER]
    assert made.moves[-1].message == "2 workers are ready without 1 noticed pod"
    assert made.last.actions == ()
    assert (made.state.attempt and made.state.attempt.notice.leaving) == ()


def test_a_lingering_pod_and_the_surplus_worker_are_removed_after_the_handover() -> None:
    made = job()
    give_notice(made)
    for _ in range(2):
        made.see(seen(noticed("w1-0", START + 99), worker("w1-1"), worker("w1-2"), surplus=1), after=1)
    decision = made.see(seen(lost("w1-0"), worker("w1-1"), worker("w1-2"), surplus=1), after=1)
    assert made.state.stage is Stage.RUNNING
    assert asked(decision) == [(True, True)]
    assert made.state.failures == 1


@pytest.mark.parametrize(
    ("placed", "then", "message"),
    [
        pytest.param(
            False,
            Stage.DRAINING,
            "no capacity for a replacement in time",
            id="without capacity",
        ),
        pytest.param(
            True, Stage.REPLACING, "w1-0 (Interruption)", id="on a node: the program waits for it inside the attempt"
        ),
    ],
)
def test_near_the_end_of_the_notice_the_job_drains_unless_the_replacement_is_scheduled(
    placed: bool, then: Stage, message: str
) -> None:
    made = job()
    give_notice(made)
    fresh = PodSeen("w1-2", phase=PodPhase.PENDING, ready=False, scheduled=placed, image_pulled=placed)
    pods = (noticed("w1-0", START + 11 + NOTICE), worker("w1-1"), fresh)
    made.see(seen(*pods, surplus=1), after=NOTICE - COMMIT_RESERVE - 2)
    assert made.state.stage is Stage.REPLACING
    assert made.last.wake_at == made.attempt.notice.replace_by
    made.see(seen(*pods, surplus=1), after=2)
    made.see_again(after=0)
    assert made.state.stage is then
    assert message in made.moves[-1].message
    assert isinstance(made.last.actions[0], Replace if placed else Drain)
    assert made.state.failures == 1


def test_an_attempt_handed_over_before_the_replacement_is_ready_recovers_in_place() -> None:
    made = job()
    give_notice(made)
    fresh = PodSeen("w1-2", phase=PodPhase.PENDING, ready=False, scheduled=True, image_pulled=True)
    for after in (NOTICE - COMMIT_RESERVE, 0):
        made.see(seen(noticed("w1-0", START + 56), worker("w1-1"), fresh, surplus=1), after=after)
    made.see(seen(worker("w1-1"), fresh), after=2)
    assert made.state.stage is Stage.RECOVERING
    made.see(seen(worker("w1-1"), worker("w1-2")), after=5)
    assert (made.state.stage, made.state.failures, made.state.last_number) == (Stage.RUNNING, 1, 1)


NOT_POSSIBLE = {
    "its failures exhaust the tier": ({"tiers": (tier("spot-a", 0), tier("on-demand", -1))}, {}, {}),
    "the job has had too many failures": ({"backoff_limit": 0}, {}, {}),
    "the program does not use the log": ({"handover": Handover.WHEN_GONE}, {}, {}),
    "the program cannot hand over": ({}, {"hands_over": False}, {}),
    "the program of this attempt has not started": ({}, {"attempt": 0}, {}),
    "the last step is committed": ({}, {"step": 100}, {}),
    "the backend cannot": ({}, {}, {"surplus": None}),
}


@pytest.mark.parametrize(("wanted", "log", "more"), NOT_POSSIBLE.values(), ids=list(NOT_POSSIBLE))
def test_a_notice_drains_the_attempt_when_no_replacement_is_possible(
    wanted: dict[str, object], log: dict[str, Any], more: dict[str, Any]
) -> None:
    made = job()
    made.edit(**wanted)
    made.progress = replace(made.progress, **log)
    give_notice(made, **more)
    assert (made.state.stage, made.state.reason) == (Stage.DRAINING, Reason.EVICTION_NOTICE)


@pytest.mark.parametrize(("room", "then"), [(0, Stage.DRAINING), (1, Stage.REPLACING), (None, Stage.REPLACING)])
def test_a_replacement_respects_the_limits_of_the_capacity_tier(room: int | None, then: Stage) -> None:
    made = job()
    made.see(seen(noticed("w1-0", made.now + NOTICE), worker("w1-1")), after=1, surge_room=room)
    assert made.state.stage is then


@pytest.mark.parametrize(("left", "commit"), [(1.0, 1.0), (5.0, 5.0), (COMMIT_RESERVE, 30.0)])
def test_a_notice_too_short_for_a_commit_drains_the_attempt(left: float, commit: float) -> None:
    made = job()
    made.state = replace(made.state, measured=Measured(commit_seconds=commit))
    made.see(seen(noticed("w1-0", made.now + 1 + left), worker("w1-1")), after=1)
    assert made.state.stage is Stage.DRAINING


@pytest.mark.parametrize(("left", "commit", "by"), [(8.0, 0.0, 4.0), (NOTICE, 0.0, 35.0), (NOTICE, 30.0, 15.0)])
def test_the_end_of_the_notice_is_for_a_commit_as_long_as_those_before(left: float, commit: float, by: float) -> None:
    """Half of a short notice is for the replacement."""
    made = job()
    made.state = replace(made.state, measured=Measured(commit_seconds=commit))
    made.see(seen(noticed("w1-0", made.now + 1 + left), worker("w1-1")), after=1)
    assert (made.state.stage, made.attempt.notice.replace_by) == (Stage.REPLACING, made.now + by)


def test_the_duration_of_a_requested_commit_is_measured() -> None:
    made = job()
    made.edit(suspend=True)
    made.see(seen(worker("w1-0"), worker("w1-1")), after=1)
    made.commit(7)
    made.see(seen(worker("w1-0"), worker("w1-1")), after=12)
    assert made.state.measured.commit_seconds == 12


def test_a_notice_for_the_head_drains_the_attempt() -> None:
    made = job()
    going = PodSeen("head", PodRole.HEAD, noticed=True, notice_ends_at=made.now + NOTICE)
    made.see(attempt(1, going, worker("w1-0"), worker("w1-1"), surplus=0), after=1)
    assert made.state.stage is Stage.DRAINING


def test_a_second_notice_extends_the_replacement() -> None:
    made = job()
    give_notice(made)
    made.see(seen(noticed("w1-0", START + 60), noticed("w1-1", START + 40), surplus=1), after=1)
    made.see_again(after=0)
    assert made.last.actions == (
        AskToCommit(1, ("head", "w1-0", "w1-1"), Reason.EVICTION_NOTICE, START + 12),
        Replace(1, ("w1-0", "w1-1"), False, False, START + 40 - COMMIT_RESERVE),
    )
    assert (made.state.stage, made.state.failures) == (Stage.REPLACING, 2)


def requests(decision: Decision) -> list[AskToCommit]:
    return [action for action in decision.actions if isinstance(action, AskToCommit)]


def test_the_program_is_asked_to_commit_until_a_commit_is_observed() -> None:
    made = job()
    give_notice(made)
    going = seen(noticed("w1-0", START + NOTICE), worker("w1-1"), surplus=0)
    (request,) = requests(made.see(going, after=3))
    assert request.asked_at == START + 11, "the same request, however often it is repeated"
    made.progress = replace(made.progress, step=9, committed_at=START + 20)
    assert requests(made.see(going, after=3)) == []


def test_no_commit_is_asked_for_once_the_program_hands_over_or_after_the_replacement() -> None:
    made = job()
    give_notice(made)
    for _ in range(2):
        made.see(seen(noticed("w1-0", START + 99), worker("w1-1"), worker("w1-2"), surplus=1), after=1)
    assert requests(made.see_again(after=0)) == []
    assert requests(made.see(seen(worker("w1-1"), worker("w1-2")), after=1)) == []


def test_a_second_notice_that_exhausts_the_tier_drains_the_attempt() -> None:
    made = job(tier("spot-a", 1))
    give_notice(made)
    made.see(seen(noticed("w1-0", START + 60), noticed("w1-1", START + 60), surplus=1), after=1)
    assert made.state.stage is Stage.DRAINING
    assert made.state.record("spot-a").exhausted_by is Reason.MAX_FAILURES_EXCEEDED


def test_a_loss_during_a_replacement_removes_the_noticed_pod_at_once() -> None:
    made = job()
    give_notice(made)
    decision = made.see(seen(noticed("w1-0", START + 60), lost("w1-1"), surplus=1), after=1)
    assert (made.state.stage, made.state.failures) == (Stage.RECOVERING, 2)
    assert asked(decision) == [(True, True)]


def test_a_program_that_does_not_continue_within_grace_is_drained() -> None:
    made = job()
    give_notice(made)
    pods = (noticed("w1-0", START + 999), worker("w1-1"), worker("w1-2"))
    made.see(seen(*pods, surplus=1), after=1)
    made.see(seen(*pods, surplus=0), after=made.spec.grace)
    assert (made.state.stage, made.state.reason) == (Stage.DRAINING, Reason.EVICTION_NOTICE)
    assert made.moves[-1].message == "the program did not continue without the noticed pods"


def test_the_surplus_node_time_is_billed_and_recorded() -> None:
    made = job(tier("spot-a", 3, price=Price(3.6, 7.2)))
    give_notice(made)
    paid = made.state.spent_usd
    pods = (noticed("w1-0", START + 99), worker("w1-1"), worker("w1-2"))
    made.see(seen(*pods, surplus=1), after=0)
    made.see(seen(*pods, surplus=1), after=10)
    assert made.state.spent_usd - paid == pytest.approx(3 * 10 * 3.6 / 3600)
    assert made.state.surplus.total == made.state.surplus.surge == pytest.approx(10 * 3.6 / 3600)
    assert made.state.surplus.overlap == 0.0, "overlap.budget limits standby attempts only"


# --- nodes that are silent before their cluster marks them ---


def suspect(uid: str, **more: Any) -> PodSeen:
    return PodSeen(uid, suspect=True, node="node-1", **more)


def test_a_worker_on_a_silent_node_is_replaced_before_its_cluster_marks_the_node() -> None:
    made = job()
    decision = made.see(seen(suspect("w1-0"), worker("w1-1")), after=1)
    assert (made.state.stage, made.state.failures, made.state.phase) == (Stage.RECOVERING, 1, "Running")
    assert [(loss.pod, loss.cause, loss.noticed) for loss in made.losses] == [("w1-0", Cause.NODE_LOST, False)]
    assert asked(decision) == [(False, False)], "the lost pod keeps the replacement off its node"
    made.see(seen(suspect("w1-0"), worker("w1-1"), worker("w1-2"), surplus=1), after=8)
    assert (made.state.stage, made.state.failures, made.state.last_number) == (Stage.RUNNING, 1, 1)
    assert asked(made.last) == [(False, False)]


def test_the_pod_is_removed_once_the_node_is_marked_and_counts_once() -> None:
    made = job()
    made.see(seen(suspect("w1-0"), worker("w1-1")), after=1)
    made.see(seen(suspect("w1-0"), worker("w1-1"), worker("w1-2"), surplus=1), after=8)
    gone = lost("w1-0", Cause.NODE_LOST, silent=True)
    decision = made.see(seen(gone, worker("w1-1"), worker("w1-2"), surplus=1), after=12)
    assert asked(decision) == [(True, True)]
    made.see(seen(worker("w1-1"), worker("w1-2")), after=1)
    assert (made.state.stage, made.state.failures, made.last.actions) == (Stage.RUNNING, 1, ())
    assert (made.state.attempt and made.state.attempt.notice.leaving) == ()


def test_a_false_suspicion_costs_one_failure_and_one_restart_in_place() -> None:
    made = job()
    made.see(seen(suspect("w1-0"), worker("w1-1")), after=1)
    decision = made.see(seen(worker("w1-0"), worker("w1-1"), pending("w1-2"), surplus=1), after=5)
    assert made.state.stage is Stage.RUNNING
    assert asked(decision) == [(True, True)]
    made.see(seen(worker("w1-1"), pending("w1-2")), after=5)
    made.see(seen(worker("w1-1"), worker("w1-2")), after=5)
    assert (made.state.stage, made.state.failures, made.state.last_number) == (Stage.RUNNING, 1, 1)
    assert made.last.actions == ()


@pytest.mark.parametrize(("wanted", "log", "more"), NOT_POSSIBLE.values(), ids=list(NOT_POSSIBLE))
def test_without_a_replacement_a_suspicion_changes_nothing_until_the_node_is_marked(
    wanted: dict[str, object], log: dict[str, Any], more: dict[str, Any]
) -> None:
    made = job()
    made.edit(**wanted)
    made.progress = replace(made.progress, **log)
    made.see(seen(suspect("w1-0"), worker("w1-1"), **more), after=1)
    if made.state.failures:  # the failure that exhausts the tier: the attempt ends sooner
        limits = (Reason.MAX_FAILURES_EXCEEDED, Reason.BACKOFF_LIMIT_EXCEEDED)
        assert (made.end_reason in limits, made.state.failures) == (True, 1)
    else:
        assert (made.state.stage, made.losses) == (Stage.RUNNING, [])


def test_a_silent_node_explains_the_failure_of_the_program_before_it_is_marked() -> None:
    """Without a replacement, as for a JobSet."""
    made = SteppedJob(spec(tier("spot-a", 3), tier("on-demand", -1), attribution_window=60.0)).running()
    failed = {"exit": Exit.FAILED, "message": "rank 1 is lost"}
    made.see(attempt(1, worker("w1-0"), worker("w1-1"), **failed), after=1)
    assert made.state.stage is Stage.RUNNING, "a lost pod may still explain it"
    made.see(attempt(1, worker("w1-0"), suspect("w1-1"), **failed), after=20)
    assert (made.state.stage, made.state.reason, made.state.failures) == (Stage.ENDING, Reason.INTERRUPTED, 1)
    assert [(loss.pod, loss.cause) for loss in made.losses] == [("w1-1", Cause.NODE_LOST)]


def test_a_notice_after_a_handover_requests_a_replacement_before_it_hands_over_again() -> None:
    """Although the first pod is still recorded: there is a surplus worker."""
    made = job()
    give_notice(made)
    for _ in range(2):
        made.see(seen(noticed("w1-0", START + 99), worker("w1-1"), worker("w1-2"), surplus=1), after=1)
    made.see(seen(lost("w1-0"), worker("w1-1"), worker("w1-2"), surplus=1), after=1)
    made.see(seen(noticed("w1-1", START + 99), worker("w1-2"), surplus=1), after=1)
    assert (made.state.stage, made.attempt.notice.leaving) == (Stage.REPLACING, ("w1-0", "w1-1"))
    assert made.attempt.notice.handing_over_since is None
    assert asked(made.see_again(after=0)) == [(False, False)]
