"""The prices that a tier has had, in a bounded form."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.accounting.price_history import POINTS, SPACING, mean_price, with_price
from spotladder.core.model import PricePoint

HOUR = 3600.0


def history(*prices: tuple[float, float]) -> tuple[PricePoint, ...]:
    """After these prices, each seen at an hour."""
    found: tuple[PricePoint, ...] = ()
    for hour, usd in prices:
        found = with_price(found, usd, hour * HOUR)
    return found


def test_only_changes_are_recorded() -> None:
    assert history((0, 1.0), (2, 1.0), (4, 1.005), (6, 1.5)) == (PricePoint(0.0, 1.0), PricePoint(6 * HOUR, 1.5))


def test_a_change_soon_after_another_replaces_it() -> None:
    assert history((0, 1.0), (5, 2.0), (5.5, 3.0)) == (PricePoint(0.0, 1.0), PricePoint(5 * HOUR, 3.0))


def test_a_clock_that_steps_back_changes_nothing() -> None:
    assert history((5, 1.0), (4, 2.0)) == (PricePoint(5 * HOUR, 1.0),)


@pytest.mark.parametrize(
    ("prices", "now", "mean"),
    [((), 9, 0.0), (((0, 1.0),), 9, 1.0), (((9, 1.0),), 9, 1.0), (((0, 1.0), (6, 3.0)), 8, 1.5)],
    ids=["none", "one", "just now", "two"],
)
def test_the_mean_is_weighted_by_time(prices: tuple[tuple[float, float], ...], now: float, mean: float) -> None:
    assert mean_price(history(*prices), now * HOUR) == pytest.approx(mean)


@given(st.lists(st.tuples(st.floats(0.0, 1e4), st.floats(0.0, 100.0)), max_size=200))
def test_the_history_stays_bounded_and_in_order(prices: list[tuple[float, float]]) -> None:
    found = history(*sorted(prices))
    assert len(found) <= POINTS
    assert all(b.since - a.since >= SPACING for a, b in pairwise(found))
    if found:
        low, high = min(point.usd for point in found), max(point.usd for point in found)
        assert low - 1e-6 <= mean_price(found, 2e4 * HOUR) <= high + 1e-6
