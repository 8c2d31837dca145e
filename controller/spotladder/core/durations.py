"""Durations in Go's notation, which Kubernetes uses too (`90s`, `10m`, `1h30m`, `500ms`)."""

from __future__ import annotations

import re

_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = r"(?:[0-9]{1,12}(?:\.[0-9]{1,12})?)(?:ms|h|m|s)"
_DURATION = re.compile(rf"(?:{_PART})+")
_PARTS = re.compile(r"([0-9.]+)(ms|h|m|s)")


def parse_duration(text: str) -> float:
    """The duration in seconds. Raises ValueError with examples of the notation."""
    if len(text) <= 64 and _DURATION.fullmatch(text):
        return sum(float(number) * _MILLISECONDS[unit] for number, unit in _PARTS.findall(text)) / 1000
    if text.startswith("-") and _DURATION.fullmatch(text[1:]):
        raise ValueError("must not be negative")
    raise ValueError("is not a duration: write one like 90s, 10m, 1h30m or 500ms")


def format_duration(seconds: float) -> str:
    """The shortest notation that `parse_duration` reads back, to the millisecond: 5400 → `1h30m`."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    left = round(seconds * 1000)
    parts = []
    for unit, size in _MILLISECONDS.items():
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
