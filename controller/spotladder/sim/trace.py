"""A capacity trace: the number of nodes that one zone can provide, and their price, over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spotladder.core.model import Instant, Seconds

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Flags = NDArray[np.bool_]

UNLIMITED = 2**31 - 1
"""The number of nodes of a zone whose trace only has "available": as many as are requested."""

MAX_NODES = 1_000_000_000
"""Upper limit of numbers of nodes in a trace."""

MAX_USD = 1_000_000.0
"""Upper limit of prices in a trace, in USD per node-hour."""


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A step function over time.

    `times` has shape (n,): seconds since the start of the trace, 0 first, strictly ascending. From `times[i]` on,
    until `times[i + 1]` or `end`, the zone has `nodes[i]` nodes at `prices[i]` USD per node-hour. `prices` is None when
    the trace has no prices. `origin` is the epoch second of `times[0]`, if the file contains it. `source` is the file
    that the trace was read from.
    """

    zone: str
    times: Floats
    nodes: Counts
    end: Seconds
    prices: Floats | None = None
    origin: Instant | None = None
    source: str = ""

    def available(self, workers: int) -> Flags:
        """Shape (n,): whether all of `workers` nodes are available at once."""
        return self.nodes >= workers

    def share(self, workers: int = 1) -> float:
        """Share of time, 0 to 1, in which `workers` nodes are available at once."""
        lengths = np.diff(self.times, append=self.end)
        return float(lengths[self.available(workers)].sum() / self.end)

    def at(self, moments: Floats) -> Counts:
        """Number of nodes at these seconds after the start, same shape. The last sample holds after the end."""
        found: Counts = self.nodes[np.searchsorted(self.times, moments, side="right") - 1]
        return found

    @property
    def counted(self) -> bool:
        """Whether the trace has numbers of nodes, and not only whether there is capacity."""
        return not np.isin(self.nodes, (0, UNLIMITED)).all()


def share_of(traces: Sequence[Trace], workers: int = 1) -> float:
    """Share of the total time of these traces, 0 to 1, in which `workers` nodes are available at once."""
    return sum(trace.share(workers) * trace.end for trace in traces) / sum(trace.end for trace in traces)


def mean_price(traces: Sequence[Trace]) -> float | None:
    """The mean price over time in these traces, in USD per node-hour; None if one of them has no prices."""
    paid = duration = 0.0
    for trace in traces:
        if trace.prices is None:
            return None
        paid += float(np.diff(trace.times, append=trace.end) @ trace.prices)
        duration += trace.end
    return paid / duration if duration else None


def of_ticks(zone: str, available: Flags, gap: Seconds, source: str = "") -> Trace:
    """A trace of equal ticks: True if capacity was available. `available` has shape (ticks,)."""
    nodes = np.where(available, UNLIMITED, 0).astype(np.int64)
    times = np.arange(len(nodes), dtype=np.float64) * gap
    return Trace(zone, times, nodes, len(nodes) * gap, source=source)
