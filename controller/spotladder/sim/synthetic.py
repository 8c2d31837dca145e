"""Synthetic traces: the longer a zone has had capacity, or has had none, the less likely this is to change.

Time is divided into ticks. In each tick a spell of capacity, or a spell without it, ends with a probability that
depends on the age of the spell. A part of the random numbers is common to all zones (`correlation`). The same seed
gives the same traces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from spotladder.core.history.ages import TICK
from spotladder.sim.trace import Floats, Trace, of_ticks

AGES = (1, 2, 4, 8, 16, 36)
"""Upper bounds in ticks of the ages that share one probability; the last one holds for all greater ages."""

LONGEST = 4000
"""Maximum length of a spell, in ticks, that counts towards a mean length."""


@dataclass(frozen=True, slots=True)
class SyntheticMarket:
    """`lost` and `back`: for each range of ages, the probability in a tick that a spell with capacity, or without it,
    ends; the values are those of public spot traces. `correlation` is from 0 to 1."""

    lost: tuple[float, ...] = (0.33, 0.22, 0.16, 0.10, 0.07, 0.04, 0.02)
    back: tuple[float, ...] = (0.25, 0.16, 0.12, 0.08, 0.05, 0.03, 0.02)
    correlation: float = 0.0


def generate(market: SyntheticMarket, ticks: int, zones: Sequence[str], seed: int | Sequence[int]) -> list[Trace]:
    """One trace of `ticks` ticks for each zone. The same seed gives the same traces."""
    dice = np.random.default_rng(seed)
    shared, own = dice.standard_normal(ticks), dice.standard_normal((ticks, len(zones)))
    begun = dice.random(len(zones))
    traces = []
    for index, zone in enumerate(zones):
        luck = np.sqrt(market.correlation) * shared + np.sqrt(1.0 - market.correlation) * own[:, index]
        available = bool(begun[index] < _long_run_share(market))
        flags = np.array(_zone(market, luck.tolist(), available), dtype=np.bool_)
        traces.append(of_ticks(zone, flags, TICK, "synthetic"))
    return traces


def _zone(market: SyntheticMarket, luck: list[float], available: bool) -> list[bool]:
    """The ticks of one zone. A random number beyond the threshold of the age ends the spell: a low one ends a spell
    with capacity, a high one a spell without."""
    normal = NormalDist()
    bins = [_bin(age) for age in range(AGES[-1] + 2)]
    oldest = len(bins) - 1
    age, found = 1, []
    for value in luck:
        found.append(available)
        chance = (market.lost if available else market.back)[bins[min(age, oldest)]]
        drawn = value if available else -value
        ends = chance >= 1.0 or (chance > 0.0 and drawn < normal.inv_cdf(chance))
        available, age = (not available, 1) if ends else (available, age + 1)
    return found


def _bin(age: int) -> int:
    return next((index for index, bound in enumerate(AGES) if age <= bound), len(AGES))


def _long_run_share(market: SyntheticMarket) -> float:
    """Share of the time with capacity, from the mean lengths of both kinds of spells."""
    lengths = [_mean(np.array(hazards)) for hazards in (market.lost, market.back)]
    return lengths[0] / sum(lengths)


def _mean(hazards: Floats) -> float:
    """Mean length in ticks of spells with these hazards, of at most LONGEST ticks."""
    chances = hazards[np.searchsorted(AGES, np.arange(1, LONGEST))]
    return float(1.0 + np.cumprod(1.0 - chances).sum())
