"""Timestamps in UTC as the Kubernetes API writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def utc_timestamp(instant: float) -> str:
    """`metav1.Time`: whole seconds, rounded down, such as 2026-01-31T08:00:00Z. `instant` is in seconds since the
    epoch."""
    return datetime.fromtimestamp(int(instant), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_microseconds(instant: float) -> str:
    """`metav1.MicroTime`, such as 2026-01-31T08:00:00.250000Z. `instant` is in seconds since the epoch."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(timestamp: str) -> float:
    """The seconds since the epoch of a timestamp in RFC 3339.

    Raises:
        ValueError: The text is not a timestamp.
    """
    return datetime.fromisoformat(timestamp).timestamp()


def instant(timestamp: str | None) -> float | None:
    """The seconds since the epoch of a timestamp of the Kubernetes API; None if it is absent or invalid."""
    try:
        return seconds_of(timestamp) if timestamp else None
    except ValueError:
        return None
