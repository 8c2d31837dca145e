from __future__ import annotations

import pytest

from spotladder.timestamps import seconds_of, utc_microseconds, utc_timestamp


@pytest.mark.parametrize(
    ("instant", "seconds", "microseconds"),
    [
        (0.0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
        (1_769_846_400.25, "2026-01-31T08:00:00Z", "2026-01-31T08:00:00.250000Z"),
        (1_769_846_400.75, "2026-01-31T08:00:00Z", "2026-01-31T08:00:00.750000Z"),
    ],
)
def test_a_timestamp_is_in_utc_and_rounds_seconds_down(instant: float, seconds: str, microseconds: str) -> None:
    assert (utc_timestamp(instant), utc_microseconds(instant)) == (seconds, microseconds)
    assert seconds_of(seconds) == int(instant)


@pytest.mark.parametrize("timestamp", ["2026-01-31T08:00:00Z", "2026-01-31T09:00:00+01:00", "2026-01-31T08:00:00.000Z"])
def test_the_seconds_of_a_timestamp_in_any_time_zone(timestamp: str) -> None:
    assert seconds_of(timestamp) == 1_769_846_400.0


def test_the_seconds_of_another_text_are_an_error() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        seconds_of("yesterday")
