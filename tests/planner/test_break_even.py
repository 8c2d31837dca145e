"""The loss rate from which spot saves nothing, by the closed formulas."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from spotladder.core.model import KnownCapacity
from spotladder.planner.break_even import break_even
from spotladder.planner.plan import PlanInput, TierFacts, estimated
from tests.planner.test_plan import ON_DEMAND, SPOT, given

BACKUP = TierFacts(ON_DEMAND, "b", KnownCapacity(evictions=0.0))
UNLIMITED = TierFacts(replace(SPOT, max_failures=-1), "a", KnownCapacity(evictions=0.25))


def scaled(asked: PlanInput, factor: float) -> PlanInput:
    tiers = tuple(
        replace(facts, known=replace(facts.known, evictions=(facts.known.evictions or 0.0) * factor))
        for facts in asked.tiers
    )
    return replace(asked, tiers=tiers)


def test_spot_saves_below_the_break_even_rate_and_not_above_it() -> None:
    asked = given(UNLIMITED, BACKUP)
    found = break_even(asked)
    assert found is not None
    below, above = (estimated(scaled(asked, found * factor)) for factor in (0.95, 1.05))
    assert below is not None
    assert above is not None
    assert below.cost.savings_fraction > 0 > above.cost.savings_fraction


def test_a_job_that_costs_more_than_on_demand_at_its_own_rate_has_a_lower_break_even() -> None:
    found = break_even(given(UNLIMITED, BACKUP, overhead=30.0))
    assert found is not None
    assert 0 < found < 1


def test_a_failure_without_overhead_costs_nothing_at_any_rate() -> None:
    assert break_even(given(UNLIMITED, BACKUP, overhead=0.0)) == math.inf


@pytest.mark.parametrize("rate", [None, 0.0])
def test_without_losses_there_is_no_break_even(rate: float | None) -> None:
    assert break_even(given(TierFacts(SPOT, "a", KnownCapacity(evictions=rate)), BACKUP)) is None


def test_an_unknown_rate_beside_a_known_one_is_not_taken_for_none() -> None:
    unknown = TierFacts(replace(SPOT, name="other"), "c", KnownCapacity())
    assert break_even(given(UNLIMITED, unknown, BACKUP)) is None
