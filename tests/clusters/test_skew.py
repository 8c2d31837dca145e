from __future__ import annotations

import pytest

from spotladder.clusters.skew import ahead

NOON = "Sat, 21 Nov 2026 12:00:00 GMT"
AT = 1795262400.0


@pytest.mark.parametrize(
    ("date", "asked", "answered", "expected"),
    [
        (NOON, AT, AT + 0.1, 0.0),
        (NOON, AT + 0.95, AT + 0.99, 0.0),  # it was cut to the second
        (NOON, AT - 2.0, AT - 1.9, 0.0),
        (NOON, AT - 30.0, AT + 30.0, 0.0),  # a slow answer says nothing
        (NOON, AT - 3600.0, AT - 3599.5, 3599.5),
        (NOON, AT + 3600.0, AT + 3600.5, -3599.0),
        (NOON, AT - 60.0, AT - 10.0, 10.0),  # by so much at least
        (None, AT, AT, 0.0),
        ("yesterday", AT, AT, 0.0),
    ],
)
def test_what_a_date_says_of_a_clock(date: str | None, asked: float, answered: float, expected: float) -> None:
    assert ahead(date, asked, answered) == pytest.approx(expected)
