"""The cost of gangs on spot zones of one and of several regions, through the decisions of the controller.

The zones are drawn from the synthetic market, so that the benchmark needs no traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spotladder.sim.synthetic import SyntheticMarket, generate
from spotladder.sim.trace import Trace
from tests.bench import gangs, published, rows
from tests.bench.gangs import GANGS, Place, region_of
from tests.bench.rows import Row

HOURS, DEADLINE = 24, 36

ZONES: Mapping[str, float] = {
    "us-east-1a": 0.97,
    "us-east-1b": 0.97,
    "us-west-2a": 1.06,
    "us-west-2b": 1.06,
    "eu-west-1a": 1.24,
    "eu-west-1b": 1.24,
}
"""USD per node-hour."""

HOME = region_of(next(iter(ZONES)))

POOLS, POOL_NODES = 4, 4
"""Number of pools in a zone, and of nodes in a pool."""

USUAL = SyntheticMarket()

POOL = replace(USUAL, lost=tuple(0.5 * chance for chance in USUAL.lost), correlation=0.8)
"""A pool loses its capacity half as often as a zone of the public traces of 2022, and the pools of a zone correlate. So
the shares of the time with 1, 8 and 16 of 16 nodes are like those of the public records of node counts with one node,
half and all of the largest number of nodes: 0.94, 0.80 and 0.24 here; 1.00, 0.83 and 0.21 of the p3 nodes; 0.99, 0.62
and 0.01 of the g4dn nodes."""


def measure(seeds: int) -> Sequence[Row]:
    return [row for gang in GANGS for row in gangs.compared(gang, places(seeds), HOURS, DEADLINE, seeds)]


def places(seeds: int) -> list[Place]:
    """One region, and all of them."""
    zones = {zone: [trace(zone, seed) for seed in range(seeds)] for zone in ZONES}
    regions = len({region_of(zone) for zone in ZONES})
    home = {zone: traces for zone, traces in zones.items() if region_of(zone) == HOME}
    return [Place("1 region", home), Place(f"{regions} regions", zones)]


def trace(zone: str, seed: int) -> Trace:
    """The node counts of a zone until the deadline, with its price."""
    ticks = DEADLINE * published.HOUR // published.TICK
    pools = generate(POOL, ticks, [f"{zone}-{pool}" for pool in range(POOLS)], seed * len(ZONES) + _place(zone))
    nodes = POOL_NODES * np.array([pool.available(1) for pool in pools]).sum(axis=0)
    prices = np.full(ticks, ZONES[zone])
    return replace(pools[0], zone=zone, nodes=nodes, prices=prices)


def _place(zone: str) -> int:
    return list(ZONES).index(zone)


NOTE = (
    f"A gang has {HOURS} h of work and {DEADLINE} h of time, on synthetic zones with up to {POOLS * POOL_NODES} nodes: "
    "two in each of three regions. An hour of a node costs 0.97, 1.06 or 1.24 USD on spot, by region, and 3.06 USD on "
    "demand. *8 to 16* is an elastic gang. The controller knows the capacity of a zone only from its own attempts. "
    "Evictions count nodes. The ratio is the cost relative to on-demand.\n\n"
    "A larger gang gains more from several regions: a zone nearly always has one node, but rarely all sixteen. "
    "`uniform-progress` does not leave on-demand for a zone whose capacity is unknown, so it saves little with a gang "
    "that needs all sixteen. `adaptive` tries such zones."
)

if __name__ == "__main__":
    rows.main(measure, "Gangs over regions", note=NOTE, seeds=8)
