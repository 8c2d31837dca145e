"""Every installed policy on the published 12-variant benchmark, beside the published figures.

Needs the traces (SPOTLADDER_TRACES); without them, the page keeps its figures.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

from spotladder.core.policies.adaptive import Adaptive
from spotladder.errors import SpotladderError
from spotladder.policies import registry
from spotladder.sim.ticks import drive, oracle
from tests.bench import fit_adaptive, published, rows
from tests.bench.rows import Row

PUBLISHED = {"greedy": 30.98, "uniform-progress": 41.67, "adaptive": 45.15, "oracle": 52.52}
"""Known scores; for `adaptive` that of the best published policy."""

LIMITED = frozenset({"ordered"})
"""Policies that know no deadline: on a tier without maxFailures they wait on spot for ever."""

FASTEST = 1_000_000
"""Ticks per second that are wanted, of one thread."""


def measure(every: int) -> Sequence[Row]:
    traces = published.folder()
    assert traces is not None
    starts, found = published.load(traces), []
    for name in registry.names():
        if name in LIMITED:
            continue
        entrant = _entrant(name, traces)
        began = time.process_time()
        try:
            result = published.scores(starts, entrant, every=every)
        except SpotladderError as error:
            print(f"{name}: {error}", flush=True)
            continue
        speed = result.ticks / (time.process_time() - began)
        peer = PUBLISHED.get(name)
        goal = "≥ 48.1, no deadline missed" if name == "adaptive" else "no deadline missed"
        met = result.missed == 0 and (name != "adaptive" or result.mean >= 48.1)
        found.append(Row(f"{name}: mean of the 12 variants", result.mean, "points", "published", peer, goal, met))
        found += [Row(f"{name}: {variant}", value, "points", "–") for variant, value in result.variants.items()]
        found.append(Row(f"{name}: speed", speed, "ticks/s", "wanted", FASTEST, "≥ 1,000,000", speed >= FASTEST))
    found += [_oracle(starts, every), _decided(starts)]
    return found


def _oracle(starts: published.Starts, every: int) -> Row:
    """The bound: no policy can score more, because the oracle knows each trace."""
    result = published.scored(starts, lambda _zone, job: oracle.run(job), every)
    peer = PUBLISHED["oracle"]
    return Row(
        "oracle: mean of the 12 variants", result.mean, "points", "published", peer, "the bound", result.missed == 0
    )


def _entrant(name: str, traces: Path) -> published.Entrant:
    """The policy of each run; `adaptive` with the model that is fitted on all zones but the one of the run."""
    if name != "adaptive":
        policy = registry.by_name(name)
        return lambda _zone, _job: policy
    models = fit_adaptive.held_back(fit_adaptive.load(traces))
    return lambda zone, _job: Adaptive(models[zone])


def _decided(starts: published.Starts) -> Row:
    """The speed of the real `decide`, which the fast path is compared with."""
    job = published.job(starts[published.ZONES[0]][0], 70, 0.2)
    began = time.process_time()
    result = drive.run(job, registry.by_name("ordered"))
    return Row("decide: speed", result.ticks / (time.process_time() - began), "ticks/s", "–")


if __name__ == "__main__":
    if published.folder() is None:
        print("left out, there are no traces: set SPOTLADDER_TRACES")
        sys.exit(0)
    rows.main(measure, "Policies on the published 12-variant benchmark", every=1)
