"""Runs that are shared are those that the simulator would have made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spotladder.core.model import Exhausted, FailureUnit
from spotladder.planner.plan import Question, TierFacts
from spotladder.planner.runs import Runs
from spotladder.planner.simulated import Assumptions, outcomes, with_tier
from spotladder.sim.world.run import SimulationOutcome
from tests.planner.test_plan import ON_DEMAND, SPOT, question
from tests.searching import examples

LIMITS = st.sampled_from((-1, 0, 1, 2, 3, 5, 10))
BACKUP = TierFacts(ON_DEMAND, "b", evictions=0.0)


def asked(first: int, second: int, policy: str = "ordered", **spec: Any) -> Question:
    tiers = (
        TierFacts(replace(SPOT, max_failures=first, notice=30.0), "a", evictions=0.4, availability=0.8),
        TierFacts(replace(SPOT, name="other", max_failures=second), "o", evictions=0.6),
    )
    return replace(question(*tiers, BACKUP, **spec), policy=policy)


def unworded(one: SimulationOutcome) -> SimulationOutcome:
    """The outcome without the messages of its moves, which may name limits."""
    return replace(one, path=tuple(replace(step, move=replace(step.move, message="")) for step in one.path))


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    variants=st.lists(st.tuples(LIMITS, LIMITS), min_size=2, max_size=5),
    seed=st.integers(0, 10_000),
    policy=st.sampled_from(("ordered", "greedy", "adaptive")),
    unit=st.sampled_from(FailureUnit),
    limit=st.sampled_from((None, 8 * 3600.0)),
)
def test_a_shared_run_is_that_of_the_simulator(
    variants: list[tuple[int, int]], seed: int, policy: str, unit: FailureUnit, limit: float | None
) -> None:
    runs = Runs()
    for first, second in variants:
        job = asked(first, second, policy, failure_unit=unit, max_duration=limit)
        shared, alone = runs.of(job, Assumptions(), [seed]), outcomes(job, Assumptions(), [seed])
        assert [unworded(one) for one in shared] == [unworded(one) for one in alone]


def test_a_range_of_limits_needs_few_runs() -> None:
    runs, job = Runs(), asked(-1, -1)
    seeds = range(10)
    losses = sum(one.evictions for one in runs.of(job, Assumptions(), seeds))
    for limit in range(11):
        runs.of(with_tier(job, "spot", max_failures=limit), Assumptions(), seeds)
    assert runs.simulated <= 10 + losses
    assert runs.simulated < 11 * 10 / 2


def test_every_run_of_a_variant_is_counted_once() -> None:
    counts: list[int] = []
    runs, job = Runs(counts.append), asked(-1, -1)
    for limit in (-1, 0, 10, -1):
        runs.of(with_tier(job, "spot", max_failures=limit), Assumptions(), range(10))
    assert sum(counts) == 3 * 10 > runs.simulated


@pytest.mark.parametrize("change", [{"commit_interval": 60.0}, {"restart": 60.0}])
def test_other_assumptions_need_runs_of_their_own(change: dict[str, float]) -> None:
    runs, job = Runs(), asked(3, 3)
    runs.of(job, Assumptions(), [1])
    runs.of(job, replace(Assumptions(), **change), [1])  # type: ignore[arg-type]
    assert runs.simulated == 2


def test_a_job_that_begins_again_at_its_first_tier_shares_no_runs() -> None:
    runs = Runs()
    for limit in (5, 6):
        runs.of(asked(limit, 0, exhausted=Exhausted.RESTART), Assumptions(), [1])
    assert runs.simulated == 2
