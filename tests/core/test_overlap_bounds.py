"""What an overlap may cost and how long it may last, and what its nodes are charged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    Exit,
    Overlap,
    Price,
    Stage,
    SurplusCosts,
)
from tests.core.builders import (
    all_ready,
    attempt,
    head,
    pending,
    priced,
    tier,
    worker,
)
from tests.core.standby import held, standing_by, tiers, training


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
    assert (changes.state.stage, changes.state.standby.attempt) == (stage, None)


def test_no_bound_applies_once_the_live_attempt_is_being_ended() -> None:
    job = standing_by(tiers(overlap=Overlap(max_duration=30.0)))
    job.see(all_ready(1), held(), after=1)
    job.see(all_ready(1), held(), after=60)
    assert job.state.stage is Stage.DRAINING
    job.see(all_ready(1, exit=Exit.INTERRUPTED), held(), after=1)
    assert (job.number, job.state.stage) == (2, Stage.RUNNING)


def test_a_used_up_budget_means_no_further_standby() -> None:
    job = training(tiers(overlap=Overlap(budget=0.01)))
    job.state = replace(job.state, surplus=SurplusCosts(overlap=0.01))
    job.see(all_ready(1), after=1)
    assert (job.state.stage, job.state.standby.attempt) == (Stage.DRAINING, None)


def test_the_nodes_of_both_attempts_are_paid() -> None:
    job = standing_by(tiers(stall_timeout=1e6, start_timeout=1e6))
    job.see(all_ready(1), all_ready(2, held=False), after=1)
    before = job.state
    job.see(all_ready(1), all_ready(2, held=False), after=3600)
    spot, on_demand = (job.state.record(name) for name in ("spot", "on-demand"))
    assert spot.cost - before.record("spot").cost == pytest.approx(2.0)
    assert on_demand.cost - before.record("on-demand").cost == pytest.approx(6.0)
    assert job.state.surplus.overlap - before.surplus.overlap == pytest.approx(2.0)
    assert job.state.surplus.total == job.state.surplus.overlap


def test_a_standby_that_is_given_up_is_paid_for_until_its_pods_are_gone() -> None:
    job = standing_by(
        replace(tiers(), tiers=(priced("spot", 3.6, 7.2), priced("on-demand", 7.2, 7.2, max_failures=-1)))
    )
    job.see(all_ready(1), attempt(2, head(), worker("s1"), pending("s2"), held=False), after=1)
    job.policy.name = "on-demand"
    spent = job.state.record("spot").cost
    job.see(all_ready(1), attempt(2, head(), worker("s1"), pending("s2"), held=False), after=0)
    assert (job.state.standby.attempt, [(one.number, one.nodes) for one in job.state.left]) == (None, [(2, 1)])
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


def test_max_duration_bounds_a_tier_without_price() -> None:
    cheap = tier("spot", price=Price(known=False))
    chosen = (cheap, priced("on-demand", 3.0, 3.0, max_failures=-1))
    job = training(tiers(tiers=chosen, overlap=Overlap(max_duration=600.0)))
    job.see(all_ready(1), after=1)
    assert job.standby.number == 2


def test_an_unavailable_tier_is_not_tried() -> None:
    job = training()
    job.see(all_ready(1), after=1, unavailable={"spot": "its cluster does not answer"})
    assert job.state.standby.attempt is None
