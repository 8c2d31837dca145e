"""Numbers as users read them."""

from __future__ import annotations

import pytest

from spotladder.display.figures import clock, count, count_of, hours, measure, money, percent, rate, saved, span


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (span(0), "0s"),
        (span(-3), "0s"),
        (span(59.6), "1m 00s"),
        (span(83), "1m 23s"),
        (span(7500), "2h 05m"),
        (span(300_000), "3d 11h"),
        (span(None), "–"),
        (span(float("inf")), "–"),
        (clock(83), "0:01:23"),
        (clock(float("inf")), "–"),
        (clock(36_000), "10:00:00"),
        (money(0.0123), "$0.0123"),
        (money(0.0123, 250.0), "$0.01"),
        (money(1234.5), "$1,234.50"),
        (money(-0.5), "-$0.5000"),
        (money(None), "–"),
        (count(1_234_567), "1\u202f234\u202f567"),
        (count_of(1_200, 40_000), "1\u202f200/40\u202f000"),
        (count_of(1_200, 0), "1\u202f200"),
        (percent(0.448, 1), "44.8\u202f%"),
        (percent(-0.5), "−50\u202f%"),
        (percent(-0.001), "0\u202f%"),
        (percent(None), "–"),
        (rate(None), "–"),
        (rate(250.0), "250 steps/s"),
        (rate(5.04), "5.0 steps/s"),
        (rate(0.1), "6.0 steps/min"),
        (measure(1234.5678), "1235"),
        (saved(1.0, 4.0), 0.75),
        (saved(1.0, 0.0), None),
    ],
)
def test_numbers_are_formatted_for_users(written: object, expected: object) -> None:
    assert written == expected


def test_many_hours_have_all_their_digits() -> None:
    assert [hours(number) for number in (0.66667, 12.34, 99.96, 123.4, 1234.5)] == [
        "0.667",
        "12.3",
        "100",
        "123",
        "1234",
    ]
