"""The published 12-variant benchmark: 8 zones of 2022, two deadlines, two overheads, 30 starts for each zone.

`SPOTLADDER_TRACES` names the folder with `frontier-cs/zones-2022.tar.xz`, or with the unpacked zones. docs/simulator.md
says where the traces are published.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spotladder.api.trace import trace_of
from spotladder.core.model import CapacityType, Price, Tier
from spotladder.core.policies import Policy
from spotladder.sim.trace import Trace, of_ticks
from tests.bench.ticks import drive
from tests.bench.ticks.job import NEVER, TickJob, TickResult, TickTier

HOUR = 3600
TICK = 600
WORK = 48 * HOUR
SPOT, ON_DEMAND = 0.9731, 3.06
"""USD per hour."""

CHEAPEST, DEAREST = 48 * SPOT, 48 * ON_DEMAND
MISSED = -100_000.0
"""The score of a run that misses its deadline."""

STARTS = 30

HIGH = ("us-west-2b_k80_1", "us-west-2b_v100_8", "us-west-2a_v100_8", "us-west-2b_v100_1")
LOW = ("us-west-2a_k80_8", "us-west-2b_k80_8", "us-west-2a_v100_1", "us-west-2a_k80_1")
ZONES = (*HIGH, *LOW)
GROUPS = {"high": HIGH, "low": LOW, "mixed": ZONES}
DEADLINES = (52, 70)
OVERHEADS = (0.05, 0.2)
"""Both in hours."""

Starts = Mapping[str, Sequence[tuple[bool, ...]]]
"""For each zone, the availability per tick from each of its starts."""

Entrant = Callable[[str, TickJob], Policy]
"""Makes the policy of one run from its zone and job. A fitted policy must not be fitted on that zone, and no policy may
read the availability in the job."""


@dataclass(frozen=True)
class Variant:
    group: str
    deadline: int
    overhead: float

    def __str__(self) -> str:
        return f"{self.group}, {self.deadline} h, {self.overhead:g} h"


VARIANTS = tuple(Variant(group, hours, lost) for group in GROUPS for hours in DEADLINES for lost in OVERHEADS)


@dataclass(frozen=True)
class Scores:
    """The scores of one policy: one per variant, and the number of runs that missed their deadline."""

    variants: Mapping[Variant, float]
    missed: int

    @property
    def mean(self) -> float:
        return sum(self.variants.values()) / len(self.variants)


def folder() -> Path | None:
    """The folder with the traces; None if the variable is not set."""
    named = os.environ.get("SPOTLADDER_TRACES")
    return Path(named) if named else None


def load(traces: Path) -> Starts:
    """The 30 starts of each zone."""
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    for name, content in zone_windows(traces / "frontier-cs"):
        found[name.split("/")[-4]][name.rsplit("/", 1)[-1]] = content
    if missing := [zone for zone in ZONES if zone not in found]:
        raise FileNotFoundError(f"{traces}: no windows of {', '.join(missing)}")
    return {zone: [_flags(found[zone][name], name) for name in _chosen(sorted(found[zone]))] for zone in ZONES}


def zone_windows(place: Path) -> Iterator[tuple[str, bytes]]:
    files = sorted(place.glob("*/traces/random_start/*.json"))
    if files:
        yield from ((str(file), file.read_bytes()) for file in files)
        return
    with tarfile.open(place / "zones-2022.tar.xz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is not None and "/traces/random_start/" in f"/{member.name}":
                yield f"./{member.name}", content.read()


def _chosen(names: Sequence[str]) -> list[str]:
    """`STARTS` different names at equal distances."""
    last, chosen = -1, []
    for index in range(STARTS):
        last = max(last + 1, round(index * (len(names) - 1) / (STARTS - 1)))
        chosen.append(names[last])
    return chosen


def _flags(content: bytes, name: str) -> tuple[bool, ...]:
    return tuple(window(json.loads(content), Path(name)).available(1).tolist())


def window(document: Any, path: Path) -> Trace:
    """A parsed window, such as `{"metadata": {"gap_seconds": 600}, "data": [0, 0, 1]}`, where 1 means preempted; `path`
    is its file. Raises InvalidSpec."""
    found = trace_of(document, path)
    return of_ticks(path.stem, ~np.array(found.taken, dtype=np.bool_), found.gap, str(path))


SPOT_TIER = Tier("spot", -1, NEVER, CapacityType.SPOT, Price(SPOT, ON_DEMAND))
ON_DEMAND_TIER = TickTier(Tier("on-demand", -1, NEVER, CapacityType.ON_DEMAND, Price(ON_DEMAND, ON_DEMAND)))


def job(available: tuple[bool, ...], deadline: int, overhead: float) -> TickJob:
    """The job of one run; deadline and overhead are in hours."""
    tiers = TickTier(SPOT_TIER, available), ON_DEMAND_TIER
    return TickJob(tiers, WORK, round(overhead * HOUR), deadline * HOUR, TICK)


def score(result: TickResult) -> float:
    """100 for the cost of spot without overhead, 0 for the cost of on-demand, `MISSED` for a missed deadline."""
    return 100 * (DEAREST - result.cost) / (DEAREST - CHEAPEST) if result.met else MISSED


def scores(starts: Starts, entrant: Entrant, every: int = 1) -> Scores:
    """The scores of a policy. `every`: use only each n-th start."""
    return scored(starts, lambda zone, one: drive.run(one, entrant(zone, one)), every)


def scored(starts: Starts, run: Callable[[str, TickJob], TickResult], every: int = 1) -> Scores:
    """The scores of the results of `run` for each job and its zone."""
    by_run: dict[tuple[str, int, float], list[TickResult]] = {}
    for zone in ZONES:
        for deadline in DEADLINES:
            for overhead in OVERHEADS:
                jobs = [job(available, deadline, overhead) for available in starts[zone][::every]]
                by_run[zone, deadline, overhead] = [run(zone, one) for one in jobs]
    found = {}
    for variant in VARIANTS:
        results = [
            score(result)
            for zone in GROUPS[variant.group]
            for result in by_run[zone, variant.deadline, variant.overhead]
        ]
        found[variant] = sum(results) / len(results)
    return Scores(found, sum(not result.met for results in by_run.values() for result in results))
