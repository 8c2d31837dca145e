"""Join, agreement and commit of many ranks: the real channel of rank 0, and simulated other ranks on this machine."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence

from tests.bench.rows import Row, main
from tests.train.many_ranks import ManyRanks

UNIT = 1 << 10 if sys.platform == "darwin" else 1
"""Size of the unit of `ru_maxrss` is 1 byte on macOS and 1 KiB on Linux."""

JOIN_LIMIT = 10.0
AGREEMENT_LIMIT = 1.0


def rss() -> float:
    """Peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT / 1024


def measure(ranks: int) -> Sequence[Row]:
    before = rss()
    group = ManyRanks(ranks)
    began = time.perf_counter()
    with group.joined():
        joined = time.perf_counter()
        group.agree()
        agreed = time.perf_counter()
        group.commit()
        committed = time.perf_counter()
        memory = rss() - before
    name = f"{ranks:,} ranks"
    return [
        _limited(f"{name}: start of their process → all have joined", joined - began, JOIN_LIMIT),
        _limited(f"{name}: agreement on the step of a commit", agreed - joined, AGREEMENT_LIMIT),
        Row(f"{name}: commit of one file of each rank", committed - agreed, "s", "agreement", agreed - joined),
        Row(f"{name}: messages of rank 0 per commit and rank", group.messages / (ranks - 1), "", "–"),
        Row(f"{name}: memory of rank 0's channel and commit", memory, "MiB", "–"),
    ]


def _limited(name: str, seconds: float, limit: float) -> Row:
    return Row(name, seconds, "s", "limit", limit, goal=f"≤ {limit:g} s", met=seconds <= limit)


if __name__ == "__main__":
    main(measure, "Agreement and commit of many ranks", ranks=1000)
