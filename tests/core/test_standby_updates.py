"""A changed workload starts a standby attempt on the same tier."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spotladder.core.model import (
    Delete,
    Exit,
    Launch,
    Stage,
)
from spotladder.core.reasons import Reason
from tests.core.builders import (
    SteppedJob,
    all_ready,
    attempt,
    pending,
)
from tests.core.standby import held, tiers, training


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
    assert (job.standby.template, job.state.standby_reason) == ("two", Reason.SPEC_UPDATED)
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
