"""One zone of a world: its trace as changes over time, and the cost of a node over an interval."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Price, Seconds
from spotladder.sim.trace import UNLIMITED, Floats, Trace


@dataclass(frozen=True, slots=True)
class ZonePlan:
    """The properties of a zone.

    With `trace` None it always has capacity. `provision_delay` is how long a node takes to join once there is capacity
    for it, `boot` how long a pod on it then takes to be ready, `notice` how long before its end the loss of a node is
    announced. All are in seconds. `price` holds where the trace has no prices. In `closed` periods, each from a time
    to a time after the start of the run, the zone provides no new nodes; nodes that are held stay. `reports_shortage`:
    an attempt learns at once that the zone has no capacity for it, as from Karpenter; otherwise its pods only wait, as
    in a cluster without a provisioner, until provisionTimeout expires.
    """

    name: str
    trace: Trace | None = None
    price: Price = field(default_factory=Price)
    provision_delay: Seconds = 0.0
    boot: Seconds = 0.0
    notice: Seconds = 0.0
    closed: tuple[tuple[Seconds, Seconds], ...] = ()
    reports_shortage: bool = True


class Zone:
    """A zone during a run that lasts at most `duration` seconds. It keeps only the changes of this time, so that the
    memory of a run does not grow with the trace."""

    def __init__(self, plan: ZonePlan, duration: Seconds = math.inf) -> None:
        self.plan = plan
        self.times, self.counts, self.prices = _changes(plan, duration)
        self.varying = bool((self.prices != self.prices[0]).any())
        self.turns = sorted({moment for period in plan.closed for moment in period if moment < math.inf})
        # Cumulative USD per node at each change, so that the cost of an interval is one difference.
        spans = np.diff(self.times)
        self._paid = np.concatenate(([0.0], np.cumsum(spans * self.prices[:-1] / HOUR)))

    def nodes(self, now: Seconds) -> int:
        """The total number of nodes that the zone can provide or hold."""
        return int(self.counts[self._index(now)])

    def closed(self, now: Seconds) -> bool:
        """Whether the zone provides no new nodes."""
        return any(begins <= now < ends for begins, ends in self.plan.closed)

    def price(self, now: Seconds) -> float:
        """USD per node-hour."""
        return float(self.prices[self._index(now)])

    def cost(self, since: Seconds, until: Seconds) -> float:
        """USD for one node from `since` to `until`."""
        return self._paid_until(until) - self._paid_until(since)

    def next_change(self, now: Seconds) -> Seconds:
        """When the capacity or the price changes next, or the zone opens or closes; infinity: never."""
        return min(_after(self.times, now), _after(self.turns, now))

    def _index(self, now: Seconds) -> int:
        return bisect_right(self.times, now) - 1

    def _paid_until(self, moment: Seconds) -> float:
        index = self._index(moment)
        return float(self._paid[index] + (moment - self.times[index]) * self.prices[index] / HOUR)


def _after(times: Sequence[Seconds], now: Seconds) -> Seconds:
    index = bisect_right(times, now)
    return float(times[index]) if index < len(times) else math.inf


def _changes(plan: ZonePlan, duration: Seconds) -> tuple[list[float], list[int], Floats]:
    """Times from the start of the run, nodes and prices, only at changes of nodes or prices during the run. The last
    values hold indefinitely."""
    trace = plan.trace
    if trace is None:
        return [0.0], [UNLIMITED], np.array([plan.price.per_node_hour])
    part = slice(0, int(np.searchsorted(trace.times, duration, side="right")))
    times, nodes = trace.times[part], trace.nodes[part]
    prices = np.full(len(nodes), plan.price.per_node_hour) if trace.prices is None else trace.prices[part]
    changed = np.ones(len(nodes), dtype=np.bool_)
    changed[1:] = (np.diff(nodes) != 0) | (np.diff(prices) != 0)
    return times[changed].tolist(), nodes[changed].tolist(), prices[changed]
