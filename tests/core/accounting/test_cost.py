"""The cost model: its published reference values, its monotonicity, and the bill of a scenario."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from spotladder.core.accounting.cost import (
    Accounting,
    CostScenario,
    break_even,
    estimate,
)
from spotladder.core.accounting.held_nodes import HOUR, charged
from spotladder.core.model import Price
from spotladder.errors import InvalidSpec

REFERENCE = CostScenario(hours=5, spot_fraction=0.6, max_failures=5, overhead=0.2)


# --- reference values ------------------------------------------------------------------------------------------------


def test_the_published_example() -> None:
    result = estimate(REFERENCE)
    assert REFERENCE.total_hours == pytest.approx(6)
    assert result.cost == pytest.approx(2.76)
    assert result.savings == pytest.approx(2.24)
    assert result.savings_fraction == pytest.approx(0.448)


@pytest.mark.parametrize(
    ("accounting", "cost"),
    [(Accounting.CONSERVATIVE, 3.30), (Accounting.BLENDED, 2.76), (Accounting.AT_SPOT_PRICE, 2.40)],
)
def test_the_published_example_in_the_three_accountings(accounting: Accounting, cost: float) -> None:
    assert estimate(REFERENCE, accounting).cost == pytest.approx(cost)


@pytest.mark.parametrize(("fraction", "percent"), [(0.3, 36.99), (0.4, 56.25), (0.5, 81.82), (0.6, 117.39)])
def test_the_break_even_table(fraction: float, percent: float) -> None:
    assert 100 * break_even(fraction) == pytest.approx(percent, abs=0.005)


def test_the_published_example_breaks_even_at_29_failures() -> None:
    assert estimate(REFERENCE).break_even_failures == 29
    assert estimate(CostScenario(5, 0.6, 29, 0.2)).savings > 0 > estimate(CostScenario(5, 0.6, 30, 0.2)).savings


def test_failures_without_overhead_have_no_break_even() -> None:
    assert math.isinf(estimate(CostScenario(5, 0.6, 5, 0.0)).break_even_failures)
    assert math.isinf(estimate(CostScenario(5, 0.6, 5, 1e-320)).break_even_failures)


# --- monotonicity ----------------------------------------------------------------------------------------------------

HOURS = st.floats(0.01, 1e4)
FRACTION = st.floats(0.0, 1.0)
DISCOUNT = st.floats(0.01, 0.99)
FAILURES = st.integers(0, 1000)
OVERHEAD = st.floats(0.001, 10)
SCENARIO = st.builds(
    CostScenario, hours=HOURS, spot_fraction=FRACTION, max_failures=FAILURES, overhead=OVERHEAD, spot_discount=DISCOUNT
)
KIND = st.sampled_from(Accounting)


def savings(kind: Accounting, scenario: CostScenario, **changes: float) -> float:
    values = {name: getattr(scenario, name) for name in CostScenario.__slots__}
    return estimate(CostScenario(**{**values, **changes}), kind).savings_fraction


@given(SCENARIO)
def test_the_accountings_are_ordered_from_cheapest_to_most_conservative(scenario: CostScenario) -> None:
    spot, blended, conservative = (
        estimate(scenario, kind).cost
        for kind in (Accounting.AT_SPOT_PRICE, Accounting.BLENDED, Accounting.CONSERVATIVE)
    )
    assert spot <= blended * (1 + 1e-12)
    assert blended <= conservative * (1 + 1e-12)


@given(SCENARIO, KIND)
def test_the_job_saves_money_exactly_below_the_break_even(scenario: CostScenario, kind: Accounting) -> None:
    result = estimate(scenario, kind)
    assume(abs(scenario.overhead_share - result.break_even) > 1e-9 * (1 + result.break_even))
    assert (result.savings > 0) == (scenario.overhead_share < result.break_even)


REFUSED: dict[str, dict[str, Any]] = {
    "hours: must be between 0.001 and 1000000, not 0": {"hours": 0},
    "hours: must be between 0.001 and 1000000, not nan": {"hours": math.nan},
    "hours: must be between 0.001 and 1000000, not inf": {"hours": math.inf},
    "spot-fraction: must be between 0 and 1, not 60; for 60 % write 0.6": {"spot_fraction": 60},
    "spot-fraction: must be between 0 and 1, not 100; for 100 % write 1": {"spot_fraction": 100},
    "spot-fraction: must be between 0 and 1, not 101": {"spot_fraction": 101},
    "spot-fraction: must be between 0 and 1, not -0.1": {"spot_fraction": -0.1},
    "max-failures: must be between 0 and 1000000, not -1": {"max_failures": -1},
    "overhead: must be between 0 and 1000000, not -0.2": {"overhead": -0.2},
    "spot-discount: must be between 0 and 1, not 1.5; for 1.5 % write 0.015": {"spot_discount": 1.5},
}


@pytest.mark.parametrize("said", REFUSED)
def test_invalid_arguments_are_rejected_with_their_range(said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        savings(Accounting.BLENDED, REFERENCE, **REFUSED[said])
    assert str(caught.value) == said


@given(SCENARIO)
def test_the_charged_node_seconds_of_a_scenario_cost_its_estimate(scenario: CostScenario) -> None:
    """Work on both capacities, and the overhead: on spot it is `at-spot-price`, on demand `conservative`."""
    spot, on_demand = Price(1 - scenario.spot_discount, 1.0), Price(1.0, 1.0)
    on_spot = scenario.spot_fraction * scenario.hours
    for price, kind in ((spot, Accounting.AT_SPOT_PRICE), (on_demand, Accounting.CONSERVATIVE)):
        parts = ((on_spot, spot), (scenario.hours - on_spot, on_demand), (scenario.overhead_hours, price))
        paid = math.fsum(charged(hours * HOUR, at)[0] for hours, at in parts)
        assert paid == pytest.approx(estimate(scenario, kind).cost)
