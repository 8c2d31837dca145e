"""Reads the fitted model of the `adaptive` policy: hazard rates by age, and the minimum slack by interpolation.

Ages and times are in ticks of `ages.TICK` seconds, except values of type `Seconds`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from spotladder.core.history.ages import AGES, TICK, age_class, ticks_between
from spotladder.core.model import Seconds

WORK = (3, 6, 12, 24, 48, 72, 96, 144, 192, 240, 288)
"""Knots of the remaining work."""
OVERHEADS = (0.0, 0.3, 1.2, 3.0)
"""Knots of the overhead of a start."""
RATIOS = (1.5, 3.145, 8.0)
"""Knots of the ratio of the on-demand price to the spot price."""

_KNOTS = (0.0, *WORK)
_INVERSE = tuple(-1.0 / ratio for ratio in RATIOS)


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted model. Compared by identity, so that derived values can be cached.

    `shares[zone]`: the fraction of time in which a zone of the traces had capacity. `hazards[zone][state][age class]`:
    the probability that a spell ends at the next tick; state 1 is available. `slack`: the minimum slacks in ticks, by
    overhead, ratio, zone, wait or leave, age class and work, in this order.
    """

    shares: tuple[float, ...]
    hazards: tuple[tuple[tuple[float, ...], tuple[float, ...]], ...]
    slack: tuple[int, ...]

    @property
    def zones(self) -> range:
        """The zones of the traces."""
        return range(len(self.shares))


@lru_cache(maxsize=65536)
def survivals(model: Model, available: bool, ticks: int) -> tuple[float, ...]:
    """For each zone, the log-probability that a spell reaches this age."""
    return tuple(_survival(zone[available], ticks) for zone in model.hazards)


def _survival(hazards: Sequence[float], ticks: int) -> float:
    ages = zip(AGES, (*AGES[1:], ticks), hazards, strict=True)
    return sum(max(0, min(ticks, following) - first) * math.log1p(-hazard) for first, following, hazard in ages)


@lru_cache(maxsize=65536)
def endings(model: Model, available: bool, ticks: int) -> tuple[float, ...]:
    """For each zone, the log-probability that a spell reaches this age and ends at the next tick."""
    place = age_class(ticks)
    ends = [math.log(zone[available][place]) for zone in model.hazards]
    return tuple([log + end for log, end in zip(survivals(model, available, ticks), ends, strict=True)])


def place_of(age: Seconds) -> int:
    """The index of the age class of a spell that began `age` seconds ago."""
    return age_class(1 + ticks_between(0.0, age))


def expected_life(model: Model, weights: tuple[float, ...], age: Seconds) -> Seconds:
    """The mean time until capacity of at least this age is lost. `weights` are those of the zones of the traces."""
    place = place_of(age)
    return TICK * sum(weight * _lives(model, zone)[place] for zone, weight in enumerate(weights))


@lru_cache(maxsize=256)
def _lives(model: Model, zone: int) -> tuple[float, ...]:
    """The mean remaining life in ticks of capacity at the first age of each age class."""
    hazards = model.hazards[zone][True]
    found = [1.0 / hazards[-1]]
    for index in range(len(AGES) - 2, -1, -1):
        survives = (1.0 - hazards[index]) ** (AGES[index + 1] - AGES[index])
        found.append((1.0 - survives) / hazards[index] + survives * found[-1])
    return tuple(reversed(found))


Columns = tuple[tuple[float, ...], ...]
"""For each knot of the work, 0 included, the slack in ticks for each zone of the traces."""


class Knot(NamedTuple):
    """The knot at or after some work, its weight in linear interpolation, and the factor of the result: beyond the last
    knot it is proportional to the work."""

    high: int
    part: float
    factor: float


@lru_cache(maxsize=4096)
def knot_of(remaining: Seconds) -> Knot:
    """The place of this work among the knots."""
    work = remaining / TICK
    if work >= _KNOTS[-1]:
        return Knot(len(_KNOTS) - 1, 1.0, work / _KNOTS[-1])
    high = bisect_right(_KNOTS, work)
    return Knot(high, (work - _KNOTS[high - 1]) / (_KNOTS[high] - _KNOTS[high - 1]), 1.0)


def slack_at(knot: Knot, weights: Sequence[float], slacks: Columns) -> Seconds:
    """The slack at this place, for zones with these weights. Beyond the last knot it is proportional to the work."""
    high, part, factor = knot
    low: float = sum(map(mul, weights, slacks[high - 1]))
    top: float = sum(map(mul, weights, slacks[high]))
    return TICK * factor * (low * (1.0 - part) + top * part)


@lru_cache(maxsize=4096)
def columns(model: Model, terms: tuple[Seconds, float], place: int) -> tuple[Columns, Columns]:
    """The minimum slack to wait for spot capacity, and to leave on-demand for it, in this age class. `terms` are the
    overhead of a start, and the ratio of the on-demand price to the spot price. Terms beyond the fitted range use its
    last value."""
    overhead, ratio = terms[0] / TICK, terms[1]
    parts = [
        (row * len(RATIOS) + column, part * share)
        for row, part in _bracket(OVERHEADS, overhead)
        for column, share in _bracket(_INVERSE, -1.0 / max(ratio, 1e-9))
    ]

    def of(kind: int) -> Columns:
        rows: list[list[float]] = []
        for zone in model.zones:
            firsts = [(((table * len(model.shares) + zone) * 2 + kind) * len(AGES) + place) for table, _ in parts]
            tables = [model.slack[first * len(WORK) : (first + 1) * len(WORK)] for first in firsts]
            rows.append([sum(map(mul, [part for _, part in parts], knot)) for knot in zip(*tables, strict=True)])
        return ((0.0,) * len(model.shares), *zip(*rows, strict=True))

    return of(0), of(1)


def _bracket(knots: Sequence[float], value: float) -> list[tuple[int, float]]:
    """The adjacent knots of the value with their weights; outside of the knots only the nearest one."""
    if value <= knots[0]:
        return [(0, 1.0)]
    if value >= knots[-1]:
        return [(len(knots) - 1, 1.0)]
    high = bisect_right(knots, value)
    part = (value - knots[high - 1]) / (knots[high] - knots[high - 1])
    return [(high - 1, 1.0 - part), (high, part)]
