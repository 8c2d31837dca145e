"""Hedges: while a tier has no capacity for the job, the next tier is started beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.changes.standing_by import STANDBY_RETRY_INTERVAL
from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Exit,
    Handover,
    JobSpec,
    Launch,
    Overlap,
    PodPhase,
    PodSeen,
    Price,
    Progress,
    QueueSeen,
    Stage,
    Standby,
    TakeOver,
)
from spotladder.core.reasons import Cause, Reason
from tests.core.builders import START, SteppedJob, all_ready, attempt, head, lost, pending, priced, spec, tier, worker
from tests.core.standby import Wish

AFTER = 300.0
WITHOUT_NODES = attempt(1, head(), pending("w1"), pending("w2"))
PLACED = PodSeen("s1", ready=False, scheduled=True, image_pulled=True)
HEDGED = "attempt 2 on on-demand starts beside attempt 1: spot has not become ready for 5m"


def tiers(**more: Any) -> JobSpec:
    """A spot tier, an on-demand tier, and a hedge after 5 minutes for at most 5 USD."""
    chosen = (priced("spot", 1.0, 3.0, max_failures=2), priced("on-demand", 3.0, 3.0, max_failures=-1))
    return replace(spec(*chosen, overlap=Overlap(budget=5.0, hedge_after=AFTER)), **more)


def waiting(made: JobSpec | None = None, seen: AttemptSeen = WITHOUT_NODES) -> SteppedJob:
    """A job whose first attempt waits for capacity."""
    job = SteppedJob(made or tiers()).planned()
    job.see(seen)
    return job


def hedged(made: JobSpec | None = None) -> SteppedJob:
    """The same with a hedge that has been launched and has no nodes yet."""
    job = waiting(made)
    assert job.see(WITHOUT_NODES, after=AFTER).standby_changes[0].message == HEDGED
    assert job.see(WITHOUT_NODES).actions == (Launch(2, "on-demand", standby=True),)
    job.see(WITHOUT_NODES, booting(), after=1)
    return job


def booting(*pods: PodSeen, **more: Any) -> AttemptSeen:
    return attempt(2, head(), *(pods or (pending("s1"), pending("s2"))), held=False, **more)


def held(number: int = 2) -> AttemptSeen:
    return all_ready(number, held=True)


def test_the_next_tier_is_started_beside_a_tier_without_capacity() -> None:
    job = waiting()
    assert job.last.wake_at is not None
    assert job.last.wake_at <= START + AFTER
    job.see(WITHOUT_NODES, after=AFTER - 1)
    assert job.state.standby.attempt is None
    assert job.last.wake_at == START + AFTER
    change = job.see(WITHOUT_NODES, after=1).standby_changes[0]
    assert (change.attempt, change.tier, change.reason) == (2, "on-demand", Reason.STANDBY_STARTED)
    assert (job.state.stage, job.number, job.state.standby.reason) == (Stage.STARTING, 1, Reason.HEDGED)


def test_the_hedge_runs_if_it_is_ready_first() -> None:
    job = hedged()
    job.see(WITHOUT_NODES, held(), after=60)
    assert job.reasons[-4:] == [Reason.HEDGED, Reason.RELIEVED, Reason.FELL_BACK, Reason.ALL_READY]
    assert (job.number, job.state.stage, job.state.tier, job.state.standby.attempt) == (
        2,
        Stage.RUNNING,
        "on-demand",
        None,
    )
    assert job.last.actions == (Delete(1, Reason.HEDGED), TakeOver(2))
    spot = job.state.record("spot")
    assert (spot.exhausted_by, spot.failures, spot.last_reason) == (None, 0, Reason.HEDGED)
    assert (job.state.failures, job.state.failed_starts.unready, job.state.timers.paused_until) == (0, 0, None)
    assert [entry.available for entry in spot.spells] == [False]
    assert (job.state.history[-1].number, job.state.history[-1].reason) == (1, Reason.HEDGED)


TRAINS = attempt(1, head(), worker("w1-0"), worker("w1-1", ready=False), moved_at=START + AFTER)


@pytest.mark.parametrize(
    ("live", "other"),
    [(all_ready(1), booting()), (all_ready(1), held()), (TRAINS, booting())],
    ids=["the hedge boots", "both are ready", "a pod is not ready but the program trains"],
)
def test_the_hedge_is_deleted_if_the_live_attempt_is_ready_first(live: AttemptSeen, other: AttemptSeen) -> None:
    job = hedged()
    job.see(live, other, after=60)
    assert (job.reasons[-1], job.number, job.state.standby.attempt) == (Reason.ALL_READY, 1, None)
    assert (job.state.stage, job.state.failures, job.state.standby.not_before) == (Stage.RUNNING, 0, None)
    assert job.last.actions == (Delete(2, Reason.ALL_READY),)
    assert (job.state.record("on-demand").attempts, job.state.history) == (0, ())


def test_a_job_whose_nodes_are_lost_later_waits_again_before_the_next_hedge() -> None:
    job = hedged()
    job.see(all_ready(1), after=60)
    job.progress = Progress(5, 100, job.now, 1, stands_by=True)
    without = attempt(1, head(), worker("w1-0"), pending("w3"))
    job.see(without, after=60)
    assert job.state.stage is Stage.RECOVERING
    job.see(without, after=AFTER - 1)
    assert job.state.standby.attempt is None
    job.see(without, after=1)
    assert (job.state.standby.attempt and job.state.standby.attempt.number, job.state.stage) == (3, Stage.RECOVERING)
    job.see(without, held(3), after=30)
    assert job.reasons[-4:] == [Reason.HEDGED, Reason.RELIEVED, Reason.FELL_BACK, Reason.ALL_READY]
    assert (job.number, job.state.failures) == (3, len(job.losses))


ENDS: Mapping[str, tuple[Callable[[SteppedJob], Any], Reason, Reason | None, int]] = {
    "provisionTimeout": (
        lambda job: job.see(WITHOUT_NODES, booting(), after=300),
        Reason.INSUFFICIENT_CAPACITY,
        Reason.INSUFFICIENT_CAPACITY,
        0,
    ),
    "it crashes: the hedge does not wait for the start backoff": (
        lambda job: job.see(attempt(1, head(), lost("w1", Cause.APP_ERROR, exit_code=2)), booting(), after=1),
        Reason.START_CRASHED,
        None,
        0,
    ),
    "its head is lost": (
        lambda job: job.see(attempt(1, head(PodPhase.LOST), pending("w1"), pending("w2")), booting(), after=1),
        Reason.HEAD_LOST,
        None,
        1,
    ),
    "its objects are deleted": (lambda job: job.see(booting(), after=1), Reason.VANISHED, None, 1),
}


@pytest.mark.parametrize(("happens", "reason", "exhausted", "failures"), ENDS.values(), ids=ENDS)
def test_a_live_attempt_that_ends_by_itself_is_followed_by_its_hedge(
    happens: Callable[[SteppedJob], Any], reason: Reason, exhausted: Reason | None, failures: int
) -> None:
    job = hedged()
    happens(job)
    assert reason in job.reasons
    assert (job.number, job.state.tier, job.state.stage) == (2, "on-demand", Stage.STARTING)
    assert (job.state.record("spot").exhausted_by, job.state.failures) == (exhausted, failures)
    job.see(booting(), after=1)
    assert TakeOver(2) in job.last.actions
    job.see(all_ready(2), after=30)
    assert (job.state.stage, job.number) == (Stage.RUNNING, 2)


@pytest.mark.parametrize(
    ("hedge", "after", "why"),
    [
        pytest.param(booting(), 600, "no capacity", id="it gets no nodes"),
        pytest.param(
            booting(worker("s1"), worker("s2"), exit=Exit.FAILED), 1, "its program has ended", id="its program ends"
        ),
    ],
)
def test_a_hedge_that_fails_is_deleted_and_not_repeated_at_once(hedge: AttemptSeen, after: float, why: str) -> None:
    chosen = tiers()
    patient = replace(chosen.tiers[0], provision_timeout=7200.0)
    job = hedged(replace(chosen, tiers=(patient, chosen.tiers[1])))
    (change,) = job.see(WITHOUT_NODES, hedge, after=after).standby_changes
    assert why in change.message
    assert (job.state.stage, job.number, job.state.standby.attempt, job.state.failures) == (Stage.STARTING, 1, None, 0)
    assert job.state.record("on-demand").exhausted_by is None
    (action,) = job.see(WITHOUT_NODES, hedge).actions
    assert (isinstance(action, Delete) and action.attempt) == 2
    job.see(WITHOUT_NODES, after=STANDBY_RETRY_INTERVAL - 1)
    assert job.state.standby.attempt is None
    assert job.last.wake_at == job.now + 1
    job.see(WITHOUT_NODES, after=1)
    assert job.standby.number == 3


def test_the_budget_bounds_the_cost_of_hedges() -> None:
    job = hedged(tiers(overlap=Overlap(budget=0.05, hedge_after=AFTER)))
    boots = booting(worker("s1"), replace(PLACED, uid="s2"))
    job.see(WITHOUT_NODES, boots, after=1)
    assert job.last.wake_at is not None
    assert job.last.wake_at == pytest.approx(job.now + 0.05 / 3.0 * 3600)
    job.see(WITHOUT_NODES, boots, after=60)
    assert job.state.standby.attempt is None
    assert job.state.surplus.overlap >= 0.05
    job.state = replace(job.state, standby=Standby())
    job.see(WITHOUT_NODES, after=100)
    assert (job.state.standby.attempt, job.state.stage) == (None, Stage.STARTING)


NEVER: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no hedgeAfter": ({"overlap": Overlap(budget=5.0)}, {}),
    "no budget": ({"overlap": Overlap(hedge_after=AFTER)}, {}),
    "no overlap": ({"overlap": None}, {}),
    "handover WhenGone": ({"handover": Handover.WHEN_GONE}, {}),
    "a single tier": ({"tiers": (priced("spot", 1.0, 3.0),)}, {}),
    "the next tier has no price": (
        {"tiers": (priced("spot", 1.0, 3.0), tier("on-demand", price=Price(known=False)))},
        {},
    ),
    "the next tier is unavailable": ({}, {"unavailable": {"on-demand": "its cluster does not answer"}}),
    "an image cannot be pulled": ({}, {"blocked": "no"}),
}


@pytest.mark.parametrize(("made", "facts"), NEVER.values(), ids=NEVER)
def test_conditions_that_prevent_a_hedge(made: dict[str, Any], facts: dict[str, Any]) -> None:
    seen = replace(WITHOUT_NODES, blocked="ImagePullBackOff") if "blocked" in facts else WITHOUT_NODES
    more = {name: value for name, value in facts.items() if name != "blocked"}
    job = waiting(tiers(**made), seen)
    job.see(seen, after=AFTER + 1, **more)
    job.see(seen, after=AFTER - 10, **more)
    assert (job.state.standby.attempt, job.number) == (None, 1)


def test_a_job_that_its_queue_holds_is_not_hedged() -> None:
    queued = attempt(1, queue=QueueSeen(held=True, message="quota"))
    job = waiting(seen=queued)
    job.see(queued, after=10 * AFTER)
    assert job.state.standby.attempt is None
    job.see(WITHOUT_NODES, after=1)
    job.see(WITHOUT_NODES, after=AFTER - 2)
    assert job.state.standby.attempt is None, "the wait for quota does not count"
    job.see(WITHOUT_NODES, after=2)
    assert job.standby.number == 2


def test_a_hedge_ends_without_hedge_after_in_the_spec() -> None:
    job = hedged()
    job.edit(overlap=Overlap(budget=5.0))
    job.see(WITHOUT_NODES, booting(), after=1)
    job.see(after=10)
    assert (job.state.standby.attempt, job.state.stage) == (None, Stage.STARTING)


def test_the_policy_that_moves_to_the_tier_of_the_hedge_does_not_wait_for_it() -> None:
    job = hedged()
    job.policy = Wish("on-demand")
    job.see(WITHOUT_NODES, booting(), after=1)
    assert job.reasons[-3:] == [Reason.POLICY, Reason.RELIEVED, Reason.FELL_BACK]
    assert (job.number, job.state.tier) == (2, "on-demand")


def test_the_explanation_has_the_time_at_which_the_next_tier_is_started() -> None:
    job = waiting()
    waits = job.explanation
    assert (waits.timer, waits.until, waits.then) == (
        "overlap.hedgeAfter",
        START + AFTER,
        "on-demand is started beside it",
    )
    job = hedged()
    waits = job.explanation
    assert waits.message.endswith("; attempt 2 on on-demand starts beside it")
    assert (waits.timer, waits.then) == ("provisionTimeout", "the job leaves the tier")


def test_a_program_that_cannot_be_held_has_no_hedge() -> None:
    job = waiting()
    job.progress = Progress(5, 100, START, 1, stands_by=False)
    job.see(WITHOUT_NODES, after=AFTER + 1)
    assert job.state.standby.attempt is None
