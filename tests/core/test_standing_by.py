"""Standby attempts: a planned move boots the next attempt beside the live one, which trains until then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from spotladder.core import codec
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    AttemptSeen,
    Delete,
    Drain,
    Exit,
    Handover,
    JobSpec,
    JobState,
    Launch,
    OnInsufficientCapacity,
    Overlap,
    PodSeen,
    Price,
    Progress,
    Stage,
    TakeOver,
    TierChoice,
    TierView,
    UpdateStrategy,
)
from spotladder.core.reasons import Cause, Reason
from spotladder.core.standing_by import STANDBY_RETRY_INTERVAL
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
    spec,
    tier,
    worker,
)
from tests.core.fake_backend import FakeBackend


class Wish:
    """A policy that wants one tier, which a test changes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.view: TierView | None = None

    def choose(self, view: TierView) -> TierChoice:
        self.view = view
        return TierChoice(self.name, why="the test wants it")


def tiers(**more: Any) -> JobSpec:
    """A cheap spot tier and an on-demand tier, with standby attempts."""
    chosen = (priced("spot", 1.0, 3.0, max_failures=2), priced("on-demand", 3.0, 3.0, max_failures=-1))
    return replace(spec(*chosen, overlap=Overlap()), **more)


def training(made: JobSpec | None = None, **progress: Any) -> SteppedJob:
    """A job that trains on demand, whose policy wants spot from now on."""
    job = SteppedJob(made or tiers(), Wish("on-demand")).running()
    job.progress = Progress(
        **{"step": 5, "total": 100, "committed_at": START, "attempt": 1, "stands_by": True, **progress}
    )
    job.policy.name = "spot"
    return job


def standing_by(made: JobSpec | None = None) -> SteppedJob:
    """The same with a standby attempt that has been launched."""
    job = training(made)
    job.see(all_ready(1), after=1)
    job.see(all_ready(1), after=1)
    assert job.last.actions == (Launch(2, "spot", standby=True),)
    job.see(all_ready(1), attempt(2, pending("s1"), pending("s2"), held=False), after=1)
    assert job.state.standby is not None
    return job


def held(number: int = 2, **more: Any) -> AttemptSeen:
    return all_ready(number, held=True, **more)


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
    assert (job.number, job.state.tier, job.state.standby) == (2, "spot", None)
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
    assert (job.state.stage, job.state.standby, job.state.failures) == (Stage.RUNNING, None, 0)
    assert job.state.record("spot").exhausted_by is None
    assert (job.state.history, job.state.record("spot").attempts) == ((), 0)
    job.see(all_ready(1), attempt(2), after=1)
    assert [action for action in job.last.actions if isinstance(action, Delete)] == [Delete(2, job.state.reason)]
    job.see(all_ready(1), after=10)
    assert (job.state.stage, job.state.standby) == (Stage.RUNNING, None), "the next one waits"
    assert job.last.wake_at is not None
    assert job.last.wake_at <= job.now + STANDBY_RETRY_INTERVAL
    job.commit(7)
    job.progress = replace(job.progress, stands_by=True)
    job.see(all_ready(1), after=STANDBY_RETRY_INTERVAL)
    assert job.state.standby is not None
    assert job.state.standby.number == 3


def test_a_refusal_of_the_provisioner_ends_the_standby_at_once() -> None:
    chosen = tiers()
    cheap = replace(chosen.tiers[0], on_insufficient_capacity=OnInsufficientCapacity.FALLBACK)
    job = standing_by(replace(chosen, tiers=(cheap, chosen.tiers[1])))
    job.see(all_ready(1), attempt(2, refused("s1")), after=1)
    assert "no capacity" in job.last.standby_changes[0].message
    assert job.state.record("spot").spells[-1].available is False


def test_a_lost_head_ends_the_standby() -> None:
    job = standing_by()
    job.see(all_ready(1), attempt(2, PodSeen("h", head().role, lost("h").phase), worker("s1"), worker("s2")), after=1)
    assert job.last.standby_changes[0].message == "its head is lost"


@pytest.mark.parametrize(
    ("overlap", "after", "why", "stage"),
    [
        (Overlap(max_duration=100.0), 100.0, "spec.overlap.maxDuration of 1m40s has passed", Stage.RUNNING),
        (Overlap(budget=0.01), 20.0, "spec.overlap.budget of 0.01 USD is spent", Stage.DRAINING),
    ],
    ids=["maxDuration: the policy tries again later", "budget: the policy moves without a standby"],
)
def test_the_bounds_of_an_overlap(overlap: Overlap, after: float, why: str, stage: Stage) -> None:
    job = standing_by(tiers(overlap=overlap))
    boots = all_ready(2, held=False)
    job.see(all_ready(1), boots, after=1)
    assert job.last.wake_at is not None
    assert job.last.wake_at <= job.now + after
    job.now += after
    job.revision += 1
    seen = replace(job.last_seen, revision=job.revision)
    changes = decide(job.spec, job.state, seen, job.now, job.policy)
    assert [change.message for change in changes.standby_changes] == [why]
    assert (changes.state.stage, changes.state.standby) == (stage, None)


def test_no_bound_applies_once_the_live_attempt_is_being_ended() -> None:
    job = standing_by(tiers(overlap=Overlap(max_duration=30.0)))
    job.see(all_ready(1), held(), after=1)
    job.see(all_ready(1), held(), after=60)
    assert job.state.stage is Stage.DRAINING
    assert job.state.standby is not None
    job.see(all_ready(1, exit=Exit.INTERRUPTED), held(), after=1)
    assert (job.number, job.state.stage) == (2, Stage.RUNNING)


def test_a_used_up_budget_means_no_further_standby() -> None:
    job = training(tiers(overlap=Overlap(budget=0.01)))
    job.state = replace(job.state, overlap_usd=0.01)
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.state.standby) == (Stage.DRAINING, None)


def test_the_nodes_of_both_attempts_are_paid() -> None:
    job = standing_by(tiers(stall_timeout=1e6, start_timeout=1e6))
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    before = job.state
    job.see(all_ready(1), all_ready(2, held=False), after=3600)
    spot, on_demand = (job.state.record(name) for name in ("spot", "on-demand"))
    assert spot.cost - before.record("spot").cost == pytest.approx(2.0)
    assert on_demand.cost - before.record("on-demand").cost == pytest.approx(6.0)
    assert job.state.overlap_usd - before.overlap_usd == pytest.approx(2.0)
    assert job.state.surplus_usd == job.state.overlap_usd
    assert spot.surge_seconds == on_demand.surge_seconds == 0.0


def test_a_standby_that_is_given_up_is_paid_for_until_its_pods_are_gone() -> None:
    job = standing_by(
        replace(tiers(), tiers=(priced("spot", 3.6, 7.2), priced("on-demand", 7.2, 7.2, max_failures=-1)))
    )
    job.see(all_ready(1), attempt(2, head(), worker("s1"), pending("s2"), held=False), after=1)
    job.policy.name = "on-demand"
    spent = job.state.record("spot").cost
    job.see(all_ready(1), attempt(2, head(), worker("s1"), pending("s2"), held=False), after=0)
    assert (job.state.standby, [(one.number, one.nodes) for one in job.state.left]) == (None, [(2, 1)])
    job.see(all_ready(1), attempt(2, head(), worker("s1"), held=False), after=10)
    job.see(all_ready(1), after=10)
    job.see(all_ready(1), after=10)
    assert job.state.record("spot").cost == pytest.approx(spent + 20 * 0.001)
    assert job.state.left == ()


def test_the_budget_of_the_job_includes_the_standby() -> None:
    job = standing_by(tiers(budget=100.0))
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    rate = (2 * 3.0 + 2 * 1.0) / 3600
    spent = job.state.spent_usd
    job.spec = replace(job.spec, budget=spent + 30 * rate)
    job.see(all_ready(1), all_ready(2, held=False))
    assert job.last.wake_at == pytest.approx(job.now + 30)


def test_a_lost_live_attempt_is_followed_by_its_standby() -> None:
    job = standing_by()
    boots = attempt(2, head(), worker("s1"), pending("s2"), held=False)
    job.see(attempt(1, PodSeen("head", head().role, lost("h").phase), worker("w1-0"), worker("w1-1")), boots, after=1)
    assert job.reasons[-3:] == [Reason.HEAD_LOST, Reason.RELIEVED, Reason.MIGRATED_BACK]
    assert (job.number, job.state.stage, job.state.failures) == (2, Stage.STARTING, 1)
    assert job.state.attempt is not None
    assert job.state.attempt.created_at == job.state.waiting_since == job.now, "it is the live attempt from now on"
    job.see(boots, after=5)
    assert TakeOver(2) in job.last.actions
    job.see(all_ready(2), after=5)
    assert job.state.stage is Stage.RUNNING


def test_pods_that_the_standby_lost_before_are_no_failures() -> None:
    job = standing_by()
    recovered = attempt(2, head(), worker("s1"), lost("s2", Cause.NODE_LOST), worker("s3"), held=True)
    job.see(all_ready(1), recovered, after=1)
    job.see(all_ready(1, exit=Exit.INTERRUPTED), recovered, after=1)
    assert (job.number, job.state.stage, job.state.failures) == (2, Stage.RUNNING, 0)
    job.see(attempt(2, head(), worker("s1"), lost("s3", Cause.NODE_LOST)), after=1)
    assert job.state.failures == 1


def test_a_standby_that_is_no_longer_needed_is_given_up() -> None:
    job = standing_by()
    job.policy.name = "on-demand"
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    assert job.last.standby_changes[0].message == "the move is no longer needed"
    assert (job.state.stage, job.state.standby_after) == (Stage.RUNNING, None)


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
    standby = job.state.standby
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
    assert (job.state.stage, job.state.reason, job.state.standby) == (Stage.DRAINING, Reason.POLICY, None)
    assert job.policy.view is not None
    assert not any(outlook.overlaps for outlook in job.policy.view.outlooks)


def test_max_duration_bounds_a_tier_without_price() -> None:
    cheap = tier("spot", price=Price(known=False))
    chosen = (cheap, priced("on-demand", 3.0, 3.0, max_failures=-1))
    job = training(tiers(tiers=chosen, overlap=Overlap(max_duration=600.0)))
    job.see(all_ready(1), after=1)
    assert job.state.standby is not None


def test_an_unavailable_tier_is_not_tried() -> None:
    job = training()
    job.see(all_ready(1), after=1, unavailable={"spot": "its cluster does not answer"})
    assert job.state.standby is None


def edited(**more: Any) -> SteppedJob:
    """A job whose user changes the image while it trains."""
    made = tiers(**more)
    job = training(replace(made, tiers=tuple(replace(entry, template="one") for entry in made.tiers)))
    job.policy.name = "on-demand"
    job.see(all_ready(1), after=1)
    job.edit(tiers=tuple(replace(entry, template="two") for entry in job.spec.tiers))
    return job


def test_a_changed_template_starts_a_standby_on_the_same_tier() -> None:
    job = edited()
    job.see(all_ready(1), after=1)
    job.see(all_ready(1), after=1)
    assert job.last.actions == (Launch(2, "on-demand", standby=True),)
    assert job.state.standby is not None
    assert (job.state.standby.template, job.state.standby_reason) == ("two", Reason.SPEC_UPDATED)
    job.see(all_ready(1), held(), after=5)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.SPEC_UPDATED)
    job.see(all_ready(1, exit=Exit.INTERRUPTED), held(), after=1)
    assert (job.number, job.state.stage, job.state.attempt and job.state.attempt.template) == (2, Stage.RUNNING, "two")
    assert job.state.record("on-demand").attempts == 2


def test_a_second_change_starts_another_standby() -> None:
    job = edited()
    job.see(all_ready(1), after=1)
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    job.edit(tiers=tuple(replace(entry, template="three") for entry in job.spec.tiers))
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    assert job.state.standby is not None
    assert (job.state.standby.number, job.state.standby.template) == (3, "three")
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    assert set(job.last.actions) == {Delete(2, job.state.reason), Launch(3, "on-demand", standby=True)}


def test_a_changed_template_without_capacity_for_both_is_applied_without_a_standby() -> None:
    job = edited()
    job.see(all_ready(1), after=1)
    waits = attempt(2, pending("s1"), pending("s2"))
    job.see(all_ready(1), waits, after=1)
    job.commit(6)
    job.progress = replace(job.progress, stands_by=True)
    job.see(all_ready(1), waits, after=600)
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.SPEC_UPDATED)
    assert job.state.record("on-demand").exhausted_by is None


def test_a_standby_of_an_older_library_that_starts_at_once_fences_and_takes_over() -> None:
    """It does not know that it must wait."""
    job = standing_by()
    job.progress = replace(job.progress, attempt=2)
    job.see(all_ready(1, exit=Exit.FENCED), all_ready(2, held=False), after=1)
    assert (job.number, job.state.stage, job.state.failures) == (2, Stage.RUNNING, 0)
    assert not any(isinstance(action, TakeOver) for action in job.last.actions)


def test_an_attempt_of_another_controller_still_fences_the_job() -> None:
    job = standing_by()
    job.progress = replace(job.progress, attempt=3)
    job.see(all_ready(1, exit=Exit.FENCED), all_ready(2, held=False), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.FAILED, Reason.FENCED)


def test_a_finished_job_removes_its_standby() -> None:
    job = standing_by()
    job.see(all_ready(1, exit=Exit.SUCCEEDED), all_ready(2, held=False), after=1)
    assert (job.state.stage, job.state.standby) == (Stage.SUCCEEDED, None)
    assert Delete(2, Reason.COMPLETED) in job.last.actions


def test_a_job_that_is_suspended_right_after_the_takeover_drains_the_new_attempt() -> None:
    job = standing_by()
    job.see(all_ready(1), held(), after=1)
    job.see(all_ready(1, exit=Exit.INTERRUPTED), held(), after=1)
    job.edit(suspend=True)
    job.see(held(), after=1)
    assert job.state.stage is Stage.DRAINING
    assert [type(action) for action in job.last.actions] == [Drain]


@pytest.mark.parametrize("name", ["uniform-progress", "adaptive"])
def test_policies_return_to_a_spot_tier_whose_capacity_is_unknown_only_beside_the_live_attempt(name: str) -> None:
    for overlap in (Overlap(), None):
        made = tiers(overlap=overlap, deadline=START + 100_000.0, work=1000.0)
        job = training(made)
        job.policy = registry.by_name(name)
        job.see(all_ready(1), after=1)
        assert job.state.stage is Stage.RUNNING
        assert (job.state.standby is not None) is (overlap is not None)


def test_a_controller_that_crashes_between_any_two_steps_moves_once() -> None:
    """Each action is executed twice: the first controller crashes before it persists the new state."""
    backend, made, policy = FakeBackend(2), tiers(), Wish("on-demand")
    moves: list[Any] = []
    state, now = JobState(), START
    act = {TakeOver: backend.take_over, Launch: backend.launch, Delete: backend.delete, Drain: backend.drain}

    def look(after: float = 0.0) -> None:
        nonlocal state, now
        now += after
        for _ in range(12):
            before = state
            for died in (True, False):  # the first time nothing is persisted
                decision = decide(made, before, backend.observe(), now, policy)
                for action in decision.actions:
                    act[type(action)](action)  # type: ignore[operator]
                if not died:
                    state, moved = codec.load_state(codec.dump(decision.state)), decision.moves
            moves.extend(move.reason for move in moved)
            if state.lasting == before.lasting:
                return

    look()
    backend.bring_up(1)
    backend.progress = Progress(5, 100, START, 1, stands_by=True)
    look(10)
    policy.name = "spot"
    look(1)
    assert [seen.number for seen in backend.observe().attempts] == [1, 2]
    backend.bring_up(2)
    look(5)
    assert backend.drained == {}, "the program of the standby boots"
    backend.hold(2)
    look(5)
    assert set(backend.drained) == {1}
    backend.end_program(1, Exit.INTERRUPTED)
    look(2)
    assert [seen.number for seen in backend.observe().attempts] == [2]
    assert (state.stage, state.failures, state.last_number) == (Stage.RUNNING, 0, 2)
    assert backend.progress.attempt == 2
    assert moves[-5:] == [Reason.POLICY, Reason.DRAINED, Reason.RELIEVED, Reason.MIGRATED_BACK, Reason.ALL_READY]
