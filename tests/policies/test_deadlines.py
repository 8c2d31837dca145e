"""The deadline-aware policies under the real `decide`, which measures the work and the starts itself: none misses a
deadline that could be kept."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spotladder.core.facts.starts import LEAST_RESERVE
from spotladder.core.model import Stage
from spotladder.policies import registry
from tests.core.policies.deadline_world import ON_DEMAND, Plan, run_of
from tests.searching import examples

HOUR = 3600.0
PLANS = st.builds(
    Plan,
    work=st.floats(1.4 * HOUR, 4 * HOUR),
    spare=st.sampled_from([0.0, 1.0, 600.0, HOUR, 8 * HOUR]),
    boot=st.sampled_from([0.0, 30.0, 100.0]),
    longest=st.floats(10.0, LEAST_RESERVE - 100.0),
    spells=st.tuples(st.sampled_from([0.0, 300.0, 1800.0, 7200.0]), st.sampled_from([300.0, 1800.0, 7200.0])),
    commit_every=st.sampled_from([5, 50, 200]),
    heartbeats=st.booleans(),
    counts=st.booleans(),
)


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "adaptive"])
@settings(max_examples=examples(15), deadline=None)
@given(plan=PLANS, seed=st.integers(0, 2**32))
def test_no_deadline_is_missed_that_could_be_kept_under_provisioning_delays(name: str, plan: Plan, seed: int) -> None:
    ended = run_of(plan, registry.by_name(name), Random(seed)).state
    assert ended.stage is Stage.SUCCEEDED, ended.message


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "adaptive"])
def test_a_job_without_spot_capacity_moves_before_its_work_is_known(name: str) -> None:
    plan = Plan(work=2 * HOUR, spells=(0.0, 0.0))
    done = run_of(plan, registry.by_name(name), Random(1))
    assert done.state.stage is Stage.SUCCEEDED
    assert {tier for _at, tier in done.held if tier} == {ON_DEMAND}
    trained_from = next(at for at, tier in done.held if tier)
    assert plan.length / 8 < trained_from < plan.length / 8 + LEAST_RESERVE


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "adaptive"])
def test_a_job_with_much_time_uses_spot_capacity_only(name: str) -> None:
    plan = Plan(work=HOUR, spare=40 * HOUR, spells=(7200.0, 300.0))
    done = run_of(plan, registry.by_name(name), Random(2))
    assert done.state.stage is Stage.SUCCEEDED
    assert done.state.record(ON_DEMAND).attempts == 0


@pytest.mark.parametrize("name", ["greedy", "uniform-progress", "adaptive"])
def test_a_job_that_trains_on_spot_stays_there_although_its_work_is_unknown(name: str) -> None:
    plan = Plan(work=4 * HOUR, spare=4 * HOUR, spells=(7200.0, 100.0), counts=False)
    done = run_of(plan, registry.by_name(name), Random(3))
    assert done.state.stage is Stage.SUCCEEDED
    assert len({at for at, tier in done.held if not tier}) > 1, "it loses its capacity"
    assert done.state.record(ON_DEMAND).attempts == 0
