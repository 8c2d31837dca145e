"""A day of spot capacity on real nodes: machines are added to a cluster and removed as recorded in public traces, and
the simulator predicts the same job on the same capacity.

The simulator gets what the record of the cluster's job measured (the duration of starts, restarts, steps and commits),
and the times at which machines were given and taken. All decisions are its own.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from spotladder.core.model import Instant, Seconds, Tier
from spotladder.records.recorded import Recorded
from spotladder.sim.scenario import Scenario, simulate
from spotladder.sim.trace import Trace
from spotladder.sim.world.run import SimulationOutcome
from spotladder.sim.world.zone import ZonePlan
from tests.bench.published import TICK, window, zone_windows
from tests.day.measured import program_of, ready_after, spec_of
from tests.e2e.world import E2eCluster

HOUR: Seconds = 10.0
"""Seconds of the test for one hour of the day."""

FIRST_TICK = 660
"""The start of the day, in ticks of the traces."""

HOURS = 24

WORKERS = 2


@dataclass(frozen=True)
class DayPool:
    """The capacity of a tier over the day: `machines` at each change, as (hour, number from then on). `notice` is the
    time from the notice to the loss of a machine; 0: there is no notice."""

    name: str
    machines: tuple[tuple[int, int], ...]
    notice: Seconds = 0.0


def spot_pool(name: str, traces: Path, zone: str, notice: Seconds = 0.0) -> DayPool:
    """A pool that has its machines in the hours at whose start the zone had capacity."""
    for path, content in zone_windows(traces / "frontier-cs"):
        if f"/{zone}/" not in path:
            continue
        document = json.loads(content)
        trace = window(document, Path(path))
        first = FIRST_TICK - document["metadata"]["start_time"]
        moments = first * TICK + np.arange(HOURS) * 3600.0
        if first >= 0 and moments[-1] < trace.end:
            numbers = [
                min(WORKERS, int(nodes))
                for nodes in trace.nodes[np.searchsorted(trace.times, moments, side="right") - 1]
            ]
            changes = [(hour, new) for hour, (old, new) in enumerate(pairwise(numbers), 1) if old != new]
            return DayPool(name, ((0, numbers[0]), *changes), notice)
    raise AssertionError(f"no window of {zone} has the whole day")


@dataclass
class Day:
    """Gives machines to a cluster and takes them. `held` are those of each pool, `given` the numbers over time: (epoch
    seconds, machines)."""

    e2e: E2eCluster
    pools: Sequence[DayPool]
    held: dict[str, list[str]] = field(default_factory=dict)
    given: dict[str, list[tuple[Instant, int]]] = field(default_factory=dict)

    def begin(self) -> None:
        """Create the tiers with their first machines."""
        for pool in self.pools:
            self.e2e.pool(pool.name, 0, **({"notice": f"{pool.notice:g}s"} if pool.notice else {}))
            self._change(pool, pool.machines[0][1])

    def run(self) -> None:
        """Make the changes of the day at their hours, until the job has ended."""
        began = time.time()
        changes = sorted((hour, pool.name, pool, number) for pool in self.pools for hour, number in pool.machines[1:])
        for hour, _name, pool, number in changes:
            while (wait := began + hour * HOUR - time.time()) > 0:
                if self.e2e.status().get("phase") == "Succeeded":
                    return
                time.sleep(max(0.0, min(wait, 2.0)))
            self._change(pool, number)

    def _change(self, pool: DayPool, number: int) -> None:
        held = self.held.get(pool.name, [])
        going, held = held[number:], held[:number]
        if pool.notice:
            self.e2e.processes += [self.e2e.cluster.notice(name, pool.notice) for name in going]
        elif going:
            self.e2e.cluster.remove(*going)
        self.held[pool.name] = [*held, *self.e2e.give(pool.name, number - len(held))]
        self.given.setdefault(pool.name, []).append((time.time(), number))


def predicted(recorded: Recorded, day: Day, commit_time: Seconds) -> tuple[Scenario, SimulationOutcome]:
    """The recorded job on the capacity of the day, and the simulator's outcome. `commit_time` is that of a typical
    commit."""
    records, spec = recorded.records, spec_of(recorded)
    notices = {pool.name: pool.notice for pool in day.pools}

    def zone(tier: Tier) -> ZonePlan:
        changes = {max(0.0, at - records[0].at): number for at, number in day.given[tier.name]}
        times, nodes = np.array(list(changes), dtype=np.float64), np.array(list(changes.values()), dtype=np.int64)
        trace, wait = Trace(tier.name, times, nodes, math.inf), ready_after(records, tier.name)
        return ZonePlan(tier.name, trace, tier.price, wait, notice=notices[tier.name], reports_shortage=False)

    zones, names = tuple(map(zone, spec.tiers)), {tier.name: tier.name for tier in spec.tiers}
    world = Scenario(spec, program_of(recorded, commit_time), zones, names, measured=True)
    outcome = simulate(world, "adaptive", 0)
    assert outcome.succeeded, outcome.reason
    return world, outcome
