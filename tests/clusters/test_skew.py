from __future__ import annotations

import pytest

from spotladder.clusters.clock import CorrectedClock
from spotladder.clusters.skew import ahead, correction
from tests.clusters.stepped_clock import SteppedClock

NOON = "Sat, 21 Nov 2026 12:00:00 GMT"
AT = 1795262400.0


@pytest.mark.parametrize(
    ("date", "asked", "answered", "expected"),
    [
        (NOON, AT, AT + 0.1, 0.0),
        (NOON, AT + 0.95, AT + 0.99, 0.0),  # the header is truncated to seconds
        (NOON, AT - 2.0, AT - 1.9, 0.0),
        (NOON, AT - 30.0, AT + 30.0, 0.0),  # a slow response gives no information
        (NOON, AT - 3600.0, AT - 3599.5, 3599.5),
        (NOON, AT + 3600.0, AT + 3600.5, -3599.0),
        (NOON, AT - 60.0, AT - 10.0, 10.0),  # the minimum skew
        (None, AT, AT, 0.0),
        ("yesterday", AT, AT, 0.0),
        ("Sat, 21 Nov 99999999999999999999 12:00:00 GMT", AT, AT, 0.0),
    ],
)
def test_clock_skew_is_computed_from_the_date_header(
    date: str | None, asked: float, answered: float, expected: float
) -> None:
    assert ahead(date, asked, answered) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ahead_by", "corrected"), [(0.0, 0.0), (59.0, 0.0), (-60.0, 0.0), (61.0, 61.0), (-3600.0, -3600.0)]
)
def test_the_controllers_clock_is_corrected_if_it_is_wrong_by_more_than_a_minute(
    ahead_by: float, corrected: float
) -> None:
    clock = SteppedClock(AT)
    assert CorrectedClock(clock, lambda: correction(ahead_by)).now() == AT + corrected
