"""Fits the model of the `adaptive` policy to availability traces and writes it as a data file of the package.

    python -m tests.bench.fit_adaptive --write     fit on all zones, write policies/adaptive_model.json

tests/bench/bench_policies.py has the scores of models that are fitted on all other zones.

Traces are read from the folder in SPOTLADDER_TRACES. The model has the hazards of each
zone by the age of the availability spell. For a grid of overheads and price ratios, it has the decision that minimises
the expected cost, found by backward induction over remaining time and work. Times are in ticks of 600 s.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spotladder.core.history.ages import AGES
from spotladder.core.policies.adaptive_tables import OVERHEADS, RATIOS, WORK, Model
from tests.bench import published
from tests.bench.adaptive_file import FILE, written

Floats = NDArray[np.float64]

LONGEST = 800
"""The longest remaining time of the induction."""
PRIOR_TICKS = 20.0
"""Weight of all zones in the hazards of one zone, in ticks of observation for each age class."""

CLASSES = len(AGES)
CLASS_OF = np.array([max(0, sum(age >= first for first in AGES) - 1) for age in range(AGES[-1] + 1)])


def load(folder: Path) -> dict[str, NDArray[np.int8]]:
    """The combined windows of each zone of the published 2022 traces: 1 available, 0 not, -1 unknown."""
    found: dict[str, list[tuple[int, NDArray[np.int8]]]] = defaultdict(list)
    for name, content in published.zone_windows(folder / "frontier-cs"):
        document = json.loads(content)
        samples = 1 - np.array(document["data"], dtype=np.int8)
        found[name.split("/")[-4]].append((document["metadata"]["start_time"], samples))
    zones = {}
    for zone in published.ZONES:
        samples_of_zone = np.full(max(start + len(samples) for start, samples in found[zone]), -1, dtype=np.int8)
        for start, samples in found[zone]:
            samples_of_zone[start : start + len(samples)] = samples
        zones[zone] = samples_of_zone
    return zones


def counted(trace: NDArray[np.int8]) -> Floats:
    """Number of ticks and ends, by [ticks or ends, state, age class], in spells with a known beginning."""
    counts = np.zeros((2, 2, CLASSES))
    before, age = -1, 0
    for now in map(int, trace):
        if before >= 0 and now >= 0:
            if age:
                place = CLASS_OF[min(age, AGES[-1])]
                counts[0, before, place] += 1
                counts[1, before, place] += now != before
                age += 1
            if now != before:
                age = 1
        elif now < 0:
            age = 0
        before = now
    return counts


@dataclass(frozen=True)
class Hazards:
    """`of[zone, state, age class]`: the probability that a spell ends with the next tick; state 1 is available.
    `share[zone]`: the fraction of time with capacity."""

    of: Floats
    share: Floats


def hazards(traces: list[NDArray[np.int8]]) -> Hazards:
    """Hazards of each zone, shrunk towards the hazards of all zones."""
    counts = np.stack([counted(trace) for trace in traces])
    ticks, ends = counts.sum(axis=0)
    pooled = (ends + 0.5) / (ticks + 10.0)
    of = (counts[:, 1] + PRIOR_TICKS * pooled) / (counts[:, 0] + PRIOR_TICKS)
    return Hazards(of, np.array([np.mean(trace[trace >= 0]) for trace in traces]))


@dataclass(frozen=True)
class Decisions:
    """The minimum slack (remaining time minus remaining work, in ticks), by [case, age class, remaining work], at which
    it is better to `wait` for capacity than to start on demand, and to `leave` on-demand for spot capacity."""

    wait: Floats
    leave: Floats


def solve(of: Floats, ratio: Floats, overhead: float) -> Decisions:
    """Backward induction over the remaining time, for several cases at once: hazards `of[case, state, age class]`,
    a tick costs 1 on spot and `ratio[case]` on demand."""
    cases, top = len(of), WORK[-1] + math.ceil(overhead) + 1
    left = np.arange(top + 1, dtype=float)
    price = ratio[:, None, None]
    after = np.maximum(left + overhead - 1.0, 0.0)
    low = np.minimum(after.astype(int), top - 1)
    part = np.minimum(after - low, 1.0)
    grow = np.array([1.0 / (high - first) for first, high in pairwise(AGES)] + [0.0])[:, None]
    lost, back = of[:, 1, :, None], of[:, 0, :, None]

    def stay(value: Floats) -> Floats:
        return np.concatenate([value[..., :1], value[..., :-1]], axis=-1)

    def start(value: Floats) -> Floats:
        started: Floats = value[..., low] * (1.0 - part) + value[..., low + 1] * part
        return started

    def older(value: Floats) -> Floats:
        aged: Floats = (1.0 - grow) * value + grow * np.concatenate([value[:, 1:], value[:, -1:]], axis=1)
        return aged

    end = np.broadcast_to(left * price, (cases, CLASSES, top + 1))
    up_spot = up_demand = down_none = down_demand = end
    up_none = end[:, :1]
    tick = np.minimum(left, 1.0)
    waits = np.zeros((LONGEST + 1, cases, CLASSES, top + 1), dtype=bool)
    leaves = np.zeros_like(waits)
    last = (left + overhead) * price
    for time in range(1, LONGEST + 1):
        on_spot = (1.0 - lost) * older(up_spot) + lost * down_none[:, :1]
        on_demand = (1.0 - lost) * older(up_demand) + lost * down_demand[:, :1]
        off = (1.0 - back) * older(down_none) + back * up_none
        off_demand = (1.0 - back) * older(down_demand) + back * up_demand[:, :1]
        may_wait, may_run = time - 1 >= left + overhead, time - 1 >= left - 1 + overhead
        may_start = time - 1 >= left - 1 + 2 * overhead
        start_spot, start_demand = 1.0 + start(on_spot), price + start(on_demand)
        start_spot = np.where(may_start, start_spot, np.inf)
        keep = price * tick + stay(on_demand)
        begin_demand = price + start(off_demand)
        idle = np.where(may_wait, off, np.inf)
        waits[time], leaves[time] = idle <= begin_demand, start_spot < keep
        up_spot = np.where(may_run, np.minimum(tick + stay(on_spot), last), last)
        up_demand = np.minimum(keep, start_spot)
        up_none = np.minimum(start_spot, start_demand)[:, :1]
        down_none = np.minimum(idle, begin_demand)
        down_demand = price * tick + stay(off_demand)
        for value in (up_spot, up_demand, up_none, down_none, down_demand):
            value[..., 0] = 0.0
    return Decisions(_least(waits), _least(leaves))


def _least(better: NDArray[np.bool_]) -> Floats:
    """The minimum slack above which `better[time, case, class, work]` always holds, at each knot of the work."""
    longest = len(better) - 1
    table = np.zeros((*better.shape[1:3], len(WORK)))
    for place, work in enumerate(WORK):
        holds = better[:, :, :, work]
        last = np.where(~holds, np.arange(longest + 1)[:, None, None], 0).max(axis=0)
        table[..., place] = last + 1 - work
    return table


def fitted(traces: list[NDArray[np.int8]]) -> Model:
    """The model fitted on these zones."""
    found = hazards(traces)
    zones = len(found.share)
    slack: list[int] = []
    for overhead in OVERHEADS:
        solved = solve(np.concatenate([found.of] * len(RATIOS)), np.repeat(RATIOS, zones), overhead)
        both = np.stack([solved.wait, solved.leave], axis=1)
        slack += np.clip(np.rint(both), -99, 9999).astype(int).ravel().tolist()
    of = tuple((tuple(down), tuple(up)) for down, up in found.of.round(5).tolist())
    return Model(tuple(found.share.round(3).tolist()), of, tuple(slack))


def held_back(zones: dict[str, NDArray[np.int8]]) -> dict[str, Model]:
    """For each zone, the model that is fitted on the other zones."""
    return {held: fitted([trace for name, trace in zones.items() if name != held]) for held in zones}


def main() -> None:
    """Write the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", required=True, help="write the model fitted on all zones")
    parser.parse_args()
    traces = published.folder()
    if traces is None:
        sys.exit("SPOTLADDER_TRACES: not set: name the folder with frontier-cs/zones-2022.tar.xz")
    FILE.write_text(written(fitted(list(load(traces).values()))))
    print(f"written: {FILE}")


if __name__ == "__main__":
    main()
