"""What a trace contains, in figures: its time, its capacity and prices, and how long its spells last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spotladder.core.accounting import HOUR
from spotladder.core.model import Seconds
from spotladder.sim.readers.any_format import Reading
from spotladder.sim.spells import durations, surviving
from spotladder.sim.trace import Trace, share_of

AGES: tuple[Seconds, ...] = (600, HOUR, 4 * HOUR, 12 * HOUR, 24 * HOUR)
"""Ages in seconds for which the share of spells that last longer is described."""


@dataclass(frozen=True, slots=True)
class Spells:
    """The spells of one kind, in seconds. `ended` is the number of them that end within the trace, `mean` their total
    time divided by that, `median` the age that half of them exceed; both are None where the trace is too short to tell.
    `survival` is the share that lasts longer than each age of AGES."""

    count: int
    ended: int
    mean: Seconds | None
    median: Seconds | None
    longest: Seconds
    survival: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in USD per node-hour; `mean` is over time."""

    lowest: float
    mean: float
    highest: float


@dataclass(frozen=True, slots=True)
class Description:
    """The traces of one zone. `gap` is the length of a tick in seconds, None for events, `silence` the longest time
    between two samples of these. `nodes` are the fewest and the most nodes; None without counts. `share` is the share
    of the time with capacity for all workers."""

    zone: str
    formats: tuple[str, ...]
    files: int
    samples: int
    duration: Seconds
    gap: Seconds | None
    silence: Seconds | None
    nodes: tuple[int, int] | None
    prices: Prices | None
    share: float
    available: Spells
    unavailable: Spells


def describe(zone: str, readings: Sequence[Reading], workers: int) -> Description:
    """The traces of one zone, for a gang of `workers` workers."""
    traces = [reading.trace for reading in readings]
    gaps = {trace.gap for trace in traces}
    return Description(
        zone=zone,
        formats=tuple(dict.fromkeys(reading.format for reading in readings)),
        files=len(readings),
        samples=sum(len(trace.times) for trace in traces),
        duration=sum(trace.end for trace in traces),
        gap=gaps.pop() if len(gaps) == 1 else None,
        silence=max((_silence(trace) for trace in traces if trace.gap is None), default=None),
        nodes=_nodes(traces),
        prices=_prices(traces),
        share=share_of(traces, workers),
        available=_spells(traces, workers, available=True),
        unavailable=_spells(traces, workers, available=False),
    )


def _spells(traces: Sequence[Trace], workers: int, *, available: bool) -> Spells:
    found = [spell for trace in traces for spell in durations(trace, workers, available)]
    lengths, ended = [length for length, _ends in found], sum(ends for _length, ends in found)
    at = sorted({length for length, ends in found if ends})
    median = next((age for age, left in zip(at, surviving(found, at).tolist(), strict=True) if left <= 0.5), None)
    return Spells(
        count=len(found),
        ended=ended,
        mean=sum(lengths) / ended if ended else None,
        median=median,
        longest=max(lengths, default=0.0),
        survival=tuple(surviving(found, AGES).tolist()),
    )


def _silence(trace: Trace) -> Seconds:
    return float(np.diff(trace.times, append=trace.end).max())


def _nodes(traces: Sequence[Trace]) -> tuple[int, int] | None:
    if not any(trace.counted for trace in traces):
        return None
    return min(int(trace.nodes.min()) for trace in traces), max(int(trace.nodes.max()) for trace in traces)


def _prices(traces: Sequence[Trace]) -> Prices | None:
    lowest, highest, paid, duration = np.inf, 0.0, 0.0, 0.0
    for trace in traces:
        if trace.prices is None:
            continue
        lengths = np.diff(trace.times, append=trace.end)
        lowest, highest = min(lowest, float(trace.prices.min())), max(highest, float(trace.prices.max()))
        paid, duration = paid + float((lengths * trace.prices).sum()), duration + trace.end
    return Prices(lowest, paid / duration, highest) if duration else None
