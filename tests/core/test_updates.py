"""A spec that changes while an attempt runs: the attempt is judged by the spec that it was launched with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from spotladder.core.model import Delete, Exit, JobSpec, Launch, Stage, UpdateStrategy
from spotladder.core.reasons import Reason
from tests.core.builders import SteppedJob, all_ready, attempt, head, lost, pending, spec, tier, worker
from tests.core.standby import held, tiers, training


def first(workers: int = 2, template: str = "one", **more: object) -> JobSpec:
    return spec(tier("spot-a", 1, template=template), tier("on-demand", -1, template=template), workers=workers, **more)


def test_more_workers_in_the_spec_do_not_make_a_running_attempt_incomplete() -> None:
    job = SteppedJob(first(2, update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT)).running()
    job.spec = first(3, "two", update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT)
    for _ in range(10):
        job.see(all_ready(1), after=200)
        job.progress = replace(job.progress, step=job.progress.step + 1)
    assert (job.state.stage, job.state.failures) == (Stage.RUNNING, 0)


def test_the_next_attempt_uses_the_new_spec() -> None:
    job = SteppedJob(first(2, update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT)).running()
    job.spec = first(3, "two", update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT)
    job.see(all_ready(1), after=1)
    job.see(attempt(1, lost("head"), exit=Exit.LOST), after=1)
    job.see(after=1)
    assert (job.attempt.number, job.attempt.workers, job.attempt.template) == (2, 3, "two")
    job.see(all_ready(2, 2), after=1)
    assert job.state.stage is Stage.STARTING
    job.see(all_ready(2, 3), after=1)
    assert job.state.stage is Stage.RUNNING


@pytest.mark.parametrize("changed", [first(3, "two"), first(1, "two"), first(2, "two")], ids=["more", "fewer", "image"])
def test_update_strategy_now_drains_the_attempt_and_stays_on_the_tier(changed: JobSpec) -> None:
    job = SteppedJob(first()).running()
    job.spec = changed
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.state.reason) == (Stage.DRAINING, Reason.SPEC_UPDATED)
    assert job.state.message.startswith("the spec's pods changed")
    job.see(all_ready(1, exit=Exit.INTERRUPTED), after=1)
    job.see(after=1)
    assert (job.attempt.tier, job.attempt.workers) == ("spot-a", changed.workers)
    assert job.state.failures == 0
    job.see(all_ready(2, changed.workers), after=1)
    assert job.state.stage is Stage.RUNNING


@pytest.mark.parametrize("strategy", UpdateStrategy)
def test_an_attempt_that_never_ran_is_replaced_at_once(strategy: UpdateStrategy) -> None:
    job = SteppedJob(first(update_strategy=strategy))
    job.see()
    job.see(attempt(1, head(), pending("w")), after=1)
    job.spec = first(2, "two", update_strategy=strategy)
    job.see(attempt(1, head(), pending("w")), after=590)
    assert job.state.reason is Reason.SPEC_UPDATED
    job.see(after=1)
    assert (job.attempt.number, job.attempt.tier) == (2, "spot-a")
    job.see(attempt(2, head(), pending("w")), after=100)
    assert job.state.stage is Stage.STARTING, "provisionTimeout starts again with the new pods"


def test_an_attempt_that_is_not_launched_yet_is_persisted_with_the_new_spec_first() -> None:
    job = SteppedJob(first())
    job.see()
    job.spec = first(3, "two")
    job.revision += 1
    decision = job.see(after=1)
    assert decision.actions == (), "launched with a spec that was not persisted"
    assert (job.attempt.number, job.attempt.workers, job.attempt.template) == (1, 3, "two")
    assert job.see(after=1).actions == (Launch(1, "spot-a"),)


def test_an_existing_object_is_replaced_even_if_its_operator_has_not_acted_on_it() -> None:
    job = SteppedJob(first())
    job.see()
    job.spec = first(3, "two")
    job.see(launched=True, after=1)
    assert Reason.SPEC_UPDATED in [move.reason for move in job.moves]
    assert (job.attempt.number, job.attempt.workers) == (2, 3)


def test_an_attempt_on_an_unreachable_cluster_keeps_its_launched_spec() -> None:
    job = SteppedJob(first())
    job.see()
    job.spec = first(3, "two")
    job.see(unavailable={"spot-a": "no answer"}, after=1)
    assert job.attempt.workers == 2


def test_recovery_uses_the_worker_count_of_the_launched_spec() -> None:
    job = SteppedJob(first(2, update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT)).running()
    job.spec = first(3, "two", update_strategy=UpdateStrategy.AT_NEXT_ATTEMPT)
    job.see(attempt(1, head(), worker("w1-0"), lost("w1-1"), pending("w1-2")), after=1)
    assert job.state.stage is Stage.RECOVERING
    job.see(attempt(1, head(), worker("w1-0"), worker("w1-2")), after=10)
    assert job.state.stage is Stage.RUNNING


# --- a standby attempt on the same tier ---


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
    assert (job.standby.template, job.state.standby.reason) == ("two", Reason.SPEC_UPDATED)
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
    assert (job.standby.number, job.standby.template) == (3, "three")
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
