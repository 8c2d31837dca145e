"""Scales and ticks: from what was measured to where it is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass

TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low…high` to `start…end`, linearly or by logarithm. An empty range maps to the start."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(each) if self.log else each for each in (self.low, self.high, value))
        return self.start if high == low else self.start + (at - low) / (high - low) * (self.end - self.start)


def ticks(high: float, about: int = 5, low: float = 0.0) -> list[float]:
    """Round numbers from `low` to `high`, about so many."""
    size = high - low
    if not (math.isfinite(size) and size > 0):
        return [low]
    raw = size / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [index * step for index in range(first, math.floor(high / step + 1e-9) + 1)]


def time_ticks(seconds: float, about: int = 6) -> list[float]:
    """Moments that a clock shows as round, from 0 to `seconds`."""
    step = next((each for each in TIME_STEPS if seconds / each <= about), TIME_STEPS[-1])
    step *= max(1, math.ceil(seconds / step / about))
    return [float(index * step) for index in range(int(seconds // step) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Powers of ten within a range; with their halves and fifths when there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    return [
        each for power in range(first, last + 1) for factor in factors if low <= (each := factor * 10.0**power) <= high
    ]
