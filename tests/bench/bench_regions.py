"""The cost of every installed policy on several spot zones with different prices, compared with the oracle.

The zones are drawn from the synthetic market, so that the benchmark needs no traces. The job is that of the published
benchmark: 48 h of work, with a deadline of 60 h and an overhead of 12 min.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from spotladder.core.model import CapacityType, Price, Tier
from spotladder.core.policies import Policy
from spotladder.policies import registry
from spotladder.sim.synthetic import SyntheticMarket, generate
from tests.bench import published, rows
from tests.bench.rows import Row
from tests.bench.ticks import fast, oracle
from tests.bench.ticks.job import NEVER, TickJob, TickTier

DEADLINE = 60 * published.HOUR
OVERHEAD = 720
"""Both in seconds."""

PRICES = (0.9731, 1.05, 1.15, 1.3, 1.5, 1.7)
"""USD per hour of the zones."""

LIMITED = frozenset({"ordered"})
"""Policies that ignore the deadline."""


def measure(seeds: int) -> Sequence[Row]:
    alone, all_zones = ([job(seed, zones) for seed in range(seeds)] for zones in (1, len(PRICES)))
    found: list[Row] = []
    for place, jobs in (("1 zone", alone), (f"{len(PRICES)} zones", all_zones)):
        least = fmean(oracle.run(one).cost for one in jobs)
        names = [name for name in registry.names() if name not in LIMITED]
        found += [_row(f"{name}: {place}", registry.by_name(name), jobs, least) for name in names]
        found.append(Row(f"oracle: {place}", least, "USD", "–"))
    return found


def _row(name: str, policy: Policy, jobs: Sequence[TickJob], least: float) -> Row:
    results = [fast.run(one, policy) for one in jobs]
    met = all(result.met for result in results)
    return Row(name, fmean(result.cost for result in results), "USD", "oracle", least, "no deadline missed", met)


def job(seed: int, zones: int) -> TickJob:
    """The job on the cheapest zones, with the capacity of this seed."""
    names = [f"zone-{index}" for index in range(len(PRICES))]
    traces = generate(SyntheticMarket(), DEADLINE // published.TICK, names, seed)
    tiers = [
        TickTier(
            Tier(name, -1, NEVER, CapacityType.SPOT, Price(price, published.ON_DEMAND)),
            tuple(trace.ticks(published.TICK).tolist()),
        )
        for name, price, trace in zip(names[:zones], PRICES, traces, strict=False)
    ]
    backup = Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(published.ON_DEMAND, published.ON_DEMAND))
    return TickJob((*tiers, TickTier(backup)), published.WORK, OVERHEAD, DEADLINE, published.TICK)


if __name__ == "__main__":
    rows.main(measure, "Policies on one and on several zones", seeds=20)
