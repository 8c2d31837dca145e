"""Durations in Go's notation, which Kubernetes uses too (`90s`, `10m`, `1h30m`, `500ms`)."""

from __future__ import annotations

import re

_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PART = r"(?:[0-9]{1,12}(?:\.[0-9]{1,12})?)(?:ms|h|m|s)"
_DURATION = re.compile(rf"(?:{_PART})+")
_PARTS = re.compile(r"([0-9.]+)(ms|h|m|s)")

# Units of other notations, and their length in seconds.
_FOREIGN_SECONDS = {
    "w": 604_800, "week": 604_800, "weeks": 604_800,
    "d": 86_400, "day": 86_400, "days": 86_400,
    "h": 3_600, "hr": 3_600, "hrs": 3_600, "hour": 3_600, "hours": 3_600,
    "m": 60, "min": 60, "mins": 60, "minute": 60, "minutes": 60,
    "s": 1, "sec": 1, "secs": 1, "second": 1, "seconds": 1,
    "ms": 0.001, "msec": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "": 1,
}  # fmt: skip
_FOREIGN = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?\s*[a-z]*[\s,]*)+")
_FOREIGN_PARTS = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]*)")
_LONGEST_NUMBER = 9
_CLOCK = re.compile(r"(?:(\d{1,6}):)?(\d{1,2}):(\d{2})")


def parse_duration(text: str) -> float:
    """The duration in seconds. Raises ValueError with the notation to use instead."""
    if len(text) <= 64 and _DURATION.fullmatch(text):
        return sum(float(number) * _MILLISECONDS[unit] for number, unit in _PARTS.findall(text)) / 1000
    if text.startswith("-") and _DURATION.fullmatch(text[1:]):
        raise ValueError("must not be negative")
    raise ValueError(f"is not a duration: write {_instead(text)}")


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


def _instead(text: str) -> str:
    decimal_comma = re.sub(r"(?<=[0-9]),(?=[0-9])", ".", text.strip().lower())
    meant = _meant(decimal_comma) if len(text) <= 64 else None
    return "one like 90s, 10m, 1h30m or 500ms" if meant is None else f"{format_duration(meant)}"


def _meant(text: str) -> float | None:
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return hours * 3600 + minutes * 60 + seconds
    if not _FOREIGN.fullmatch(text):
        return None
    parts = _FOREIGN_PARTS.findall(text)
    if any(unit not in _FOREIGN_SECONDS or len(number) > _LONGEST_NUMBER for number, unit in parts):
        return None
    return sum(float(number) * _FOREIGN_SECONDS[unit] for number, unit in parts)
