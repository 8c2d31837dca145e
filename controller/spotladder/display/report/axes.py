"""Scales and ticks, which map measured values to positions in a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low…high` to `start…end`, linearly or logarithmically. An empty range maps to the start."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(each) if self.log else each for each in (self.low, self.high, value))
        return self.start if high == low else self.start + (at - low) / (high - low) * (self.end - self.start)


def ticks(high: float, about: int = 5, low: float = 0.0) -> list[float]:
    """About `about` round values from `low` to `high`."""
    size = high - low
    if not (math.isfinite(size) and size > 0):
        return [low]
    raw = size / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def time_ticks(seconds: float, about: int = 6) -> list[float]:
    """Times from 0 to `seconds` at round clock values."""
    step = next((each for each in TIME_STEPS if seconds / each <= about), TIME_STEPS[-1])
    step *= max(1, math.ceil(seconds / step / about))
    return [float(index * step) for index in range(int(seconds // step) + 1)]


def decades(low: float, high: float, most: int = 8) -> list[float]:
    """At most this many round, evenly spaced values within a range, for a logarithmic axis.

    The values are powers of ten with their doubles and fivefolds, powers of ten alone, or every n-th power: the first
    choice that fits.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = range(first, last + 1)
    fine = [each for power in powers for factor in (1.0, 2.0, 5.0) if low <= (each := _power(factor, power)) <= high]
    if len(fine) <= most:
        return fine
    inside = [power for power in powers if low <= _power(1.0, power) <= high]
    stride = max(1, math.ceil(len(inside) / most))
    return [_power(1.0, power) for power in inside if power % stride == 0]


def _power(factor: float, power: int) -> float:
    return float(f"{factor:g}e{power}")  # 10.0 ** -5 is not 1e-05


def apart(marks: Sequence[tuple[float, float]], least: float) -> list[tuple[float, float, int]]:
    """Merge marks at (place, row) that would overlap. Returns (place, row, number of merged marks).

    Marks of one row that are closer than `least` become one, at the place of the first.
    """
    kept: list[tuple[float, float, int]] = []
    newest: dict[float, int] = {}
    for place, row in sorted(marks):
        index = newest.get(row)
        if index is not None and place - kept[index][0] < least:
            at, same, number = kept[index]
            kept[index] = (at, same, number + 1)
        else:
            newest[row] = len(kept)
            kept.append((place, row, 1))
    return kept
