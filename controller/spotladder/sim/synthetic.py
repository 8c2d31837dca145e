"""Synthetic traces: the longer a zone has had capacity, or has had none, the less likely this is to change.

Time is divided into ticks. In each tick a spell of capacity, or a spell without it, ends with a probability that
depends on the age of the spell. A part of the random numbers is common to all zones (`correlation`), and spot capacity
is lost more often by day than by night (`diurnal`). The same seed gives the same traces, and the probabilities can be
fitted to a trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec
from spotladder.sim.spells import spells
from spotladder.sim.trace import Flags, Floats, Trace, of_ticks, tick_length

AGES = (1, 2, 4, 8, 16, 36)
"""Upper bounds in ticks of the ages that share one probability; the last one holds for all greater ages."""

DAY: Seconds = 86400.0

LEAST_TICKS = 20_000
"""Length of a synthetic trace that is compared with its source, in ticks, if the source is not longer."""

SEED = 0
"""The seed of that trace."""

LONGEST = 4000
"""Most ticks of a spell in a mean length."""

STEP = 1e-3
"""Part of a hazard by which it is changed to see the effect."""

MOST_CHANGE, HALVINGS = 6.0, 50
"""Limit of the change of a hazard, as the logarithm of a factor, and halvings of that range to find it."""


@dataclass(frozen=True, slots=True)
class SyntheticMarket:
    """`lost` and `back`: for each range of ages, the probability in a tick that a spell with capacity, or without it,
    ends. `correlation` and `diurnal` are from 0 to 1; the latter is the amplitude of the daily change in the
    probability of a loss. Raises InvalidSpec for invalid values."""

    lost: tuple[float, ...] = (0.33, 0.22, 0.16, 0.10, 0.07, 0.04, 0.02)
    back: tuple[float, ...] = (0.25, 0.16, 0.12, 0.08, 0.05, 0.03, 0.02)
    gap: Seconds = 600.0
    correlation: float = 0.0
    diurnal: float = 0.0

    def __post_init__(self) -> None:
        for name in ("lost", "back"):
            values = getattr(self, name)
            if len(values) != len(AGES) + 1 or not all(0 <= value <= 1 for value in values):
                raise InvalidSpec(f"expected {len(AGES) + 1} probabilities, got {values}", path=name)
        for name in ("correlation", "diurnal"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidSpec(f"expected 0 to 1, got {getattr(self, name):g}", path=name)
        if not self.gap > 0:
            raise InvalidSpec(f"expected more than 0 s, got {self.gap:g}", path="gap")


def generate(market: SyntheticMarket, ticks: int, zones: Sequence[str], seed: int) -> list[Trace]:
    """One trace of `ticks` ticks for each zone. The same seed gives the same traces."""
    return generate_zones(dict.fromkeys(zones, market), ticks, seed)


def generate_zones(markets: Mapping[str, SyntheticMarket], ticks: int, seed: int | Sequence[int]) -> list[Trace]:
    """As `generate`, for zones that each have a market. Their ticks are equally long."""
    if ticks < 1:
        raise InvalidSpec(f"expected 1 or more, got {ticks}", path="ticks")
    dice = np.random.default_rng(seed)
    shared, own = dice.standard_normal(ticks), dice.standard_normal((ticks, len(markets)))
    begun = dice.random(len(markets))
    traces = []
    for index, (zone, market) in enumerate(markets.items()):
        luck = np.sqrt(market.correlation) * shared + np.sqrt(1.0 - market.correlation) * own[:, index]
        swing = 1.0 + market.diurnal * np.sin(2 * np.pi * np.arange(ticks) * market.gap / DAY)
        available = bool(begun[index] < _long_run_share(market))
        flags = np.array(_zone(market, luck.tolist(), swing.tolist(), available), dtype=np.bool_)
        traces.append(of_ticks(zone, flags, market.gap, "synthetic"))
    return traces


def _zone(market: SyntheticMarket, luck: list[float], swing: list[float], available: bool) -> list[bool]:
    """The ticks of one zone. A random number beyond the threshold of the age ends the spell: a low one ends a spell
    with capacity, a high one a spell without."""
    normal = NormalDist()
    bins = [_bin(age) for age in range(AGES[-1] + 2)]
    oldest = len(bins) - 1
    age, found = 1, []
    for value, factor in zip(luck, swing, strict=True):
        found.append(available)
        chance = (market.lost if available else market.back)[bins[min(age, oldest)]] * (factor if available else 1.0)
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


def fit(traces: Sequence[Trace], workers: int = 1) -> SyntheticMarket:
    """The market whose spells end as often, by age, as those of the traces, and last as long on average. Traces of
    events are sampled every SyntheticMarket.gap. `correlation` is the mean correlation of availability between traces
    of equal length, which is less than that of their random numbers; `diurnal` is not fitted. Raises InvalidSpec for
    traces whose ticks differ in length."""
    usual, gap = SyntheticMarket(), tick_of(traces)
    flags = [trace.ticks(gap, workers) for trace in traces]
    found = replace(usual, lost=_hazards(flags, True, usual.lost), back=_hazards(flags, False, usual.back), gap=gap)
    return replace(found, correlation=_correlation(flags))


def tick_of(traces: Sequence[Trace]) -> Seconds:
    """The length in seconds of the ticks to which a market is fitted; that of SyntheticMarket for traces of events.
    Raises InvalidSpec for traces whose ticks differ in length."""
    return tick_length(traces) or SyntheticMarket().gap


def like(zone: str, traces: Sequence[Trace], workers: int = 1) -> Trace:
    """A synthetic trace to compare with these, from the market that is fitted to them. Raises InvalidSpec, as `fit`."""
    market = fit(traces, workers)
    ticks = round(sum(trace.end for trace in traces) / market.gap)
    return generate(market, max(ticks, LEAST_TICKS), [zone], SEED)[0]


def _hazards(flags: Sequence[Flags], available: bool, usual: Sequence[float]) -> tuple[float, ...]:
    """Ends of spells over ticks at risk, for each range of ages; `usual` counts as one tick at risk. Whether a spell
    that is cut off would have ended with its last tick is not known, so that tick is not at risk.
    Few ends of long spells are seen, and fewer in windows, but these spells decide the share of the time with capacity:
    so the mean length is that of the record, the time of all spells over their ends."""
    bounds = np.array((0, *AGES))
    observed = [spell for one in flags for spell in spells(one, available)]
    lengths, ended = np.array(observed, dtype=np.int64).reshape(-1, 2).T
    at_risk = lengths - (1 - ended)
    risks = np.clip(at_risk[:, None] - bounds, 0, np.diff(bounds, append=np.iinfo(np.int64).max)).sum(axis=0) + 1.0
    ends = np.array(usual)
    np.add.at(ends, np.searchsorted(AGES, lengths[ended == 1]), 1.0)
    found = ends / risks
    if ended.any():
        found = _with_mean(found, ends, float(at_risk.sum() / ended.sum()))
    return tuple(float(value) for value in found)


def _with_mean(hazards: Floats, ends: Floats, mean: float) -> Floats:
    """These hazards, changed so that spells last `mean` ticks on average. A hazard changes in proportion to its effect
    on the mean length, divided by the number of ends from which it is known: mostly that of old spells."""
    effects = np.array([_mean(hazards) - _mean(hazards * (1.0 + STEP * one)) for one in np.eye(len(hazards))])
    weights = effects / ends
    least, most = -MOST_CHANGE, MOST_CHANGE
    changed = hazards
    for _ in range(HALVINGS):
        middle = (least + most) / 2
        changed = np.minimum(1.0, hazards * np.exp(middle * weights / weights.max()))
        least, most = (middle, most) if _mean(changed) > mean else (least, middle)
    return changed


def _correlation(flags: Sequence[Flags]) -> float:
    """Mean correlation of availability between the zones, 0 for one zone."""
    if len(flags) < 2 or len({len(one) for one in flags}) > 1:
        return 0.0
    varying = [one for one in flags if 0 < one.sum() < len(one)]
    if len(varying) < 2:
        return 0.0
    matrix = np.asarray(np.corrcoef(np.array(varying, dtype=np.float64)))
    pairs = matrix[np.triu_indices(len(varying), 1)]
    return float(np.clip(pairs.mean(), 0.0, 1.0))
