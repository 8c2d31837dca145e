"""The planner: the published example, and inputs for which no estimate is possible."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spotladder.core.model import CapacityType, Exhausted, JobSpec, KnownCapacity, Price, Tier
from spotladder.planner.plan import PlanInput, TierFacts, estimated, expect
from spotladder.planner.risks import risks
from spotladder.sim.trace import of_ticks

SPOT = Tier("spot", 4, price=Price(0.1, 1.0), capacity_type=CapacityType.SPOT)
ON_DEMAND = Tier("on-demand", 1, price=Price(1.0, 1.0), capacity_type=CapacityType.ON_DEMAND)


def given(
    *tiers: TierFacts,
    hours: float = 5,
    overhead: float = 0.2,
    workers: int = 2,
    commit_time: float = 0.0,
    **spec: Any,
) -> PlanInput:
    """By default: two workers, with an eviction rate at which the fifth failure occurs after three of five hours."""
    tiers = tiers or (
        TierFacts(SPOT, "a", KnownCapacity(evictions=5 / 6, observed=100)),
        TierFacts(ON_DEMAND, "b", KnownCapacity(evictions=0.0)),
    )
    job = JobSpec(tiers=tuple(facts.tier for facts in tiers), **{"workers": workers, "grace": 30.0, **spec})
    return PlanInput(job, tiers, hours, overhead, interval=300.0, commit_time=commit_time)


def test_the_plan_of_the_published_example_has_its_published_costs() -> None:
    found = estimated(given())
    assert found is not None
    assert found.expected.hours == {"spot": pytest.approx(3.0), "on-demand": pytest.approx(2.0)}
    assert (found.scenario.spot_fraction, found.scenario.max_failures) == (pytest.approx(0.6), 5)
    assert found.scenario.total_hours == pytest.approx(6.0)
    assert found.cost.cost == pytest.approx(2.76)
    assert found.usd == pytest.approx(2 * 2.76)  # two workers at 1 USD per hour


@pytest.mark.parametrize(
    ("unused", "said"),
    [
        (
            TierFacts(SPOT, "a", KnownCapacity(evictions=0.0, closed=((60.0, math.inf), (0.0, 60.0)))),
            "its pool never provides a node: the tier is never used",
        ),
        (
            TierFacts(SPOT, "a", KnownCapacity(evictions=0.0, room=1)),
            "has at most 1 node, but the job needs 2: the tier is never used",
        ),
        (
            TierFacts(SPOT, "a", KnownCapacity(evictions=0.0), (of_ticks("z", np.zeros(9, bool), 60.0),)),
            "its traces never have more than 0 of 2 nodes: the closed formulas leave it out",
        ),
    ],
    ids=["closed", "too few", "never in its trace"],
)
def test_a_tier_that_never_provides_all_nodes_is_left_out(unused: TierFacts, said: str) -> None:
    asked = given(unused, TierFacts(ON_DEMAND, "b", KnownCapacity(evictions=0.0)))
    found = expect(asked)
    assert found is not None
    assert found.hours == {"on-demand": 5.0}
    assert f"spec.tiers[0] (spot): {said}" in risks(asked, None)


@pytest.mark.parametrize(("evictions", "most"), [(0.0, 3), (5.0, -1)])
def test_a_tier_that_is_never_exhausted_does_all_the_work(evictions: float, most: int) -> None:
    facts = TierFacts(replace(SPOT, max_failures=most), "a", KnownCapacity(evictions=evictions))
    found = expect(given(facts, TierFacts(ON_DEMAND, "b")))
    assert found is not None
    assert found.hours == {"spot": pytest.approx(5.0)}
    assert found.failures == pytest.approx(10 * evictions)


def test_an_unknown_eviction_rate_is_not_guessed() -> None:
    unknown = given(TierFacts(SPOT, "a"), TierFacts(ON_DEMAND, "b"))
    assert expect(unknown) is None
    assert estimated(unknown) is None
    assert any("its eviction rate is unknown" in sentence for sentence in risks(unknown, None))


def test_a_job_without_prices_is_planned_in_node_hours() -> None:
    free = TierFacts(replace(SPOT, price=Price(known=False)), "a", KnownCapacity(evictions=0.1))
    found = estimated(given(free))
    assert found is not None
    assert found.usd is None
    assert found.scenario.spot_discount == 0.9
    assert any("its price is unknown" in sentence for sentence in risks(given(free), found))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (given(TierFacts(SPOT, "a", KnownCapacity(evictions=5.0, observed=100))), "all tiers are spot"),
        (
            given(TierFacts(SPOT, "a", KnownCapacity(evictions=5.0, observed=100))),
            "are likely to be exhausted with 4.5 h of work left",
        ),
        (
            given(
                TierFacts(replace(SPOT, max_failures=-1), "a", KnownCapacity(evictions=0.1, observed=100)),
                TierFacts(ON_DEMAND, "b"),
            ),
            "-1",
        ),
        (
            given(TierFacts(SPOT, "a", KnownCapacity(evictions=0.1, observed=2.0)), TierFacts(ON_DEMAND, "b")),
            "based on only 2.0 node-hours",
        ),
        (
            given(TierFacts(SPOT, "a", KnownCapacity(evictions=0.1, observed=100, room=1)), TierFacts(ON_DEMAND, "b")),
            "at most 1 node,",
        ),
        (
            given(
                TierFacts(SPOT, "a", KnownCapacity(evictions=0.1, observed=100, unavailable="dry")),
                TierFacts(ON_DEMAND, "b"),
            ),
            "is unavailable now: dry",
        ),
        (
            given(TierFacts(replace(SPOT, price=Price(1.0, 1.0)), "a", KnownCapacity(evictions=0.1, observed=100))),
            "as much as on demand",
        ),
        (
            given(TierFacts(replace(SPOT, notice=20.0), "a", KnownCapacity(evictions=0.1, observed=100))),
            "notice is 20s",
        ),
        (given(TierFacts(replace(ON_DEMAND, max_failures=0), "b")), "the first lost pod fails the job"),
        (
            given(TierFacts(SPOT, "a", KnownCapacity(evictions=20.0, observed=100)), TierFacts(ON_DEMAND, "b")),
            "longer than the",
        ),
        (given(stall_timeout=60.0), "stallTimeout is shorter"),
        (
            given(
                TierFacts(replace(SPOT, notice=30.0), "a", KnownCapacity(evictions=0.1, observed=100)),
                TierFacts(ON_DEMAND, "b"),
                commit_time=94.0,
            ),
            "tier spot gives 30s notice, so each eviction loses work: write each checkpoint with 4 times as many ranks",
        ),
        (given(max_duration=5 * 3600.0), "maxDuration 5h"),
        (given(deadline=3600.0), "spec.deadline is before the end"),
        (given(budget=3.0), "spec.budget 3.00 USD is less than the expected 5.52 USD"),
        (given(backoff_limit=2), "backoffLimit 2"),
        (given(overhead=5.0), "save nothing"),
    ],
)
def test_each_risky_setting_is_reported(asked: PlanInput, said: str) -> None:
    assert any(said in sentence for sentence in risks(asked, estimated(asked))), risks(asked, estimated(asked))


def test_a_job_that_restarts_has_no_risk_of_exhausted_tiers() -> None:
    asked = given(TierFacts(SPOT, "a", KnownCapacity(evictions=5.0, observed=100)), exhausted=Exhausted.RESTART)
    assert not any("spent" in sentence for sentence in risks(asked, estimated(asked)))
