"""Standby attempts: a planned move boots the next attempt beside the live one, which trains until then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.changes.standing_by import STANDBY_RETRY_INTERVAL
from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Handover,
    Launch,
    OnInsufficientCapacity,
    Overlap,
    PodPhase,
    Price,
    Stage,
    TakeOver,
    UpdateStrategy,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.policies import registry
from tests.core.builders import (
    START,
    SteppedJob,
    all_ready,
    attempt,
    head,
    lost,
    pending,
    priced,
    refused,
    tier,
    worker,
)
from tests.core.standby import standing_by, tiers, training


def test_a_move_to_a_cheaper_tier_starts_the_next_attempt_beside_the_live_one() -> None:
    job = training()
    change = job.see(all_ready(1), after=1).standby_changes[0]
    assert (change.attempt, change.tier, change.reason) == (2, "spot", Reason.STANDBY_STARTED)
    assert (job.state.stage, job.state.attempt and job.state.attempt.number) == (Stage.RUNNING, 1)
    assert job.see(all_ready(1), after=1).actions == (Launch(2, "spot", standby=True),)


@pytest.mark.parametrize(
    "standby",
    {
        "not launched yet": None,
        "pods are pending": attempt(2, pending("s1"), pending("s2"), held=False),
        "one worker is ready": attempt(2, head(), worker("s1"), pending("s2"), held=False),
        "the program boots": all_ready(2, held=False),
    }.items(),
    ids=lambda case: case[0],
)
def test_the_live_attempt_trains_until_the_standby_is_ready(standby: tuple[str, AttemptSeen | None]) -> None:
    job = standing_by() if standby[1] else training()
    for _ in range(5):
        job.see(*filter(None, (all_ready(1), standby[1])), after=5)
    assert (job.state.stage, job.reasons[-1]) == (Stage.RUNNING, Reason.ALL_READY)
    assert not any(isinstance(action, Drain | Delete) for action in job.last.actions)


@pytest.mark.parametrize("is_held", [True, None], ids=["held", "a backend that cannot tell"])
def test_a_ready_standby_takes_over_when_the_live_attempt_has_committed_and_stopped(is_held: bool | None) -> None:
    job = standing_by()
    ready = all_ready(2, held=is_held)
    job.see(all_ready(1), ready, after=1)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.POLICY)
    assert [type(action) for action in job.last.actions] == [Drain]
    job.see(all_ready(1, exit=Exit.INTERRUPTED), ready, after=3)
    assert job.reasons[-4:] == [Reason.DRAINED, Reason.RELIEVED, Reason.MIGRATED_BACK, Reason.ALL_READY]
    assert (job.number, job.state.tier, job.state.standby.attempt) == (2, "spot", None)
    assert job.last.actions == (Delete(1, Reason.POLICY), TakeOver(2))
    job.progress = replace(job.progress, attempt=2)
    assert job.see(ready, after=1).actions == ()
    assert (job.state.failures, job.state.history[-1].reason) == (0, Reason.POLICY)


GIVEN_UP: Mapping[str, tuple[Callable[[SteppedJob], Any], str]] = {
    "its program fails": (
        lambda job: job.see(all_ready(1), all_ready(2, exit=Exit.FAILED, message="exit code 1"), after=1),
        "its program has ended: exit code 1",
    ),
    "its objects are gone": (lambda job: job.see(all_ready(1), after=1), "its objects are gone"),
    "a pod crashes": (
        lambda job: job.see(
            all_ready(1), attempt(2, head(), lost("s1", Cause.APP_ERROR, exit_code=2), worker("s2")), after=1
        ),
        "s1: the worker ended with exit code 2 (AppError)",
    ),
    "its head is lost": (
        lambda job: job.see(all_ready(1), attempt(2, head(PodPhase.LOST), worker("s1"), worker("s2")), after=1),
        "its head is lost",
    ),
    "no capacity within provisionTimeout": (
        lambda job: job.see(all_ready(1), attempt(2, pending("s1"), pending("s2")), after=600),
        "it found no capacity within provisionTimeout",
    ),
    "placed, but not ready within startTimeout": (
        lambda job: job.see(all_ready(1), all_ready(2, held=False), after=2400),
        "every pod that it needs was placed, but it was not ready within 30m",
    ),
}


@pytest.mark.parametrize(("happens", "why"), GIVEN_UP.values(), ids=GIVEN_UP)
def test_a_standby_that_fails_costs_no_training_and_no_failure(happens: Callable[[SteppedJob], Any], why: str) -> None:
    job = standing_by()
    job.commit(6)
    job.progress = replace(job.progress, stands_by=True)
    happens(job)
    assert job.last.standby_changes[0].message == why
    assert (job.state.stage, job.state.standby.attempt, job.state.failures) == (Stage.RUNNING, None, 0)
    assert job.state.record("spot").exhausted_by is None
    assert (job.state.history, job.state.record("spot").attempts) == ((), 0)
    job.see(all_ready(1), attempt(2), after=1)
    assert [action for action in job.last.actions if isinstance(action, Delete)] == [Delete(2, job.state.reason)]
    job.see(all_ready(1), after=10)
    assert (job.state.stage, job.state.standby.attempt) == (Stage.RUNNING, None), "the next one waits"
    assert job.last.wake_at is not None
    assert job.last.wake_at <= job.now + STANDBY_RETRY_INTERVAL
    job.commit(7)
    job.progress = replace(job.progress, stands_by=True)
    job.see(all_ready(1), after=STANDBY_RETRY_INTERVAL)
    assert job.standby.number == 3


def test_a_refusal_of_the_provisioner_ends_the_standby_at_once() -> None:
    chosen = tiers()
    cheap = replace(chosen.tiers[0], on_insufficient_capacity=OnInsufficientCapacity.FALLBACK)
    job = standing_by(replace(chosen, tiers=(cheap, chosen.tiers[1])))
    job.see(all_ready(1), attempt(2, refused("s1")), after=1)
    assert "no capacity" in job.last.standby_changes[0].message
    assert job.state.record("spot").spells[-1].available is False


def test_a_lost_live_attempt_is_followed_by_its_standby() -> None:
    job = standing_by()
    boots = attempt(2, head(), worker("s1"), pending("s2"), held=False)
    job.commit(job.standby.start_step + 3)
    job.see(attempt(1, head(PodPhase.LOST), worker("w1-0"), worker("w1-1")), boots, after=1)
    assert job.reasons[-3:] == [Reason.HEAD_LOST, Reason.RELIEVED, Reason.MIGRATED_BACK]
    assert job.attempt.start_step == job.progress.step, "it resumes from what was committed while it stood by"
    assert (job.number, job.state.stage, job.state.failures) == (2, Stage.STARTING, 1)
    assert job.attempt.created_at == job.state.timers.waiting_since == job.now, "it is the live attempt from now on"
    job.see(boots, after=5)
    assert TakeOver(2) in job.last.actions
    job.see(all_ready(2), after=5)
    assert job.state.stage is Stage.RUNNING


def test_a_standby_that_is_no_longer_needed_is_given_up() -> None:
    job = standing_by()
    job.policy.name = "on-demand"
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    assert job.last.standby_changes[0].message == "the move is no longer needed"
    assert (job.state.stage, job.state.standby.not_before) == (Stage.RUNNING, None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"suspend": True}, "the job stops"),
        ({"overlap": None}, "spec.overlap was removed"),
        ({"workers": 3}, "the spec's pods changed again"),
        ({"deadline": START}, "the job stops"),
        ({"tiers": (priced("on-demand", 3.0, 3.0, max_failures=-1),)}, "spot can no longer be used"),
    ],
    ids=["suspend", "overlap", "pods", "deadline", "tier"],
)
def test_a_changed_spec_ends_the_standby(changes: dict[str, Any], why: str) -> None:
    job = standing_by()
    job.edit(update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT, **changes)
    changed = job.see(all_ready(1), all_ready(2, held=False), after=1)
    made = [*changed.standby_changes, *job.last.standby_changes]
    standby = job.state.standby.attempt
    assert standby is None or standby.number > 2
    assert not made or made[0].message == why


AS_BEFORE: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no overlap": ({"overlap": None}, {}),
    "handover WhenGone": ({"handover": Handover.WHEN_GONE}, {}),
    "a library that cannot be held": ({}, {"stands_by": False}),
    "a program without the library": ({}, {"attempt": 0}),
    "the last step is committed": ({}, {"step": 100}),
    "a tier without price and no maxDuration": (
        {"tiers": (tier("spot", price=Price(known=False)), priced("on-demand", 3.0, 3.0, max_failures=-1))},
        {},
    ),
    "a tier that costs more": (
        {"tiers": (priced("spot", 9.0, 9.0), priced("on-demand", 3.0, 3.0, max_failures=-1))},
        {},
    ),
}


@pytest.mark.parametrize(("made", "progress"), AS_BEFORE.values(), ids=AS_BEFORE)
def test_without_a_standby_the_move_drains_first(made: dict[str, Any], progress: dict[str, Any]) -> None:
    job = training(tiers(**made), **progress)
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.state.reason, job.state.standby.attempt) == (Stage.DRAINING, Reason.POLICY, None)
    assert job.policy.view is not None
    assert not any(outlook.overlaps for outlook in job.policy.view.outlooks)


def test_an_attempt_of_another_controller_still_fences_the_job() -> None:
    job = standing_by()
    job.progress = replace(job.progress, attempt=3)
    job.see(all_ready(1, exit=Exit.FENCED), all_ready(2, held=False), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, Reason.FENCED)


@pytest.mark.parametrize("name", ["uniform-progress", "adaptive"])
def test_policies_return_to_a_spot_tier_whose_capacity_is_unknown_only_beside_the_live_attempt(name: str) -> None:
    for overlap in (Overlap(), None):
        made = tiers(overlap=overlap, deadline=START + 100_000.0, work=1000.0)
        job = training(made)
        job.policy = registry.by_name(name)
        job.see(all_ready(1), after=1)
        assert job.state.stage is Stage.RUNNING
        assert (job.state.standby.attempt is not None) is (overlap is not None)
