"""Join of many ranks, and their agreement on a commit: the real channel of rank 0, and simulated other ranks on this
machine."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.bench.rows import Row, limited, main
from tests.train.many_ranks import ManyRanks

JOIN_LIMIT, AGREEMENT_LIMIT = 10.0, 1.0
"""Seconds for the number of ranks that is measured first; `MORE` times as many may take `MORE` times as long."""

MORE = 4
"""Each rank has its connection to rank 0: the second group shows whether its cost grows faster than its size."""


def measure(ranks: int) -> Sequence[Row]:
    return [row for times in (1, MORE) for row in _rows(ranks * times, times)]


def _rows(ranks: int, times: int) -> list[Row]:
    """The rows of a group with `times` the size of the first one."""
    group = ManyRanks(ranks)
    began = time.perf_counter()
    with group.joined():
        joined = time.perf_counter()
        group.agree()
        agreed = time.perf_counter()
    what, limit = f"{ranks:,} ranks: start of their process → all have joined", times * JOIN_LIMIT
    agreement = f"{ranks:,} ranks: agreement on the step of a commit"
    return [
        limited(what, joined - began, "s", limit),
        limited(agreement, agreed - joined, "s", times * AGREEMENT_LIMIT),
    ]


if __name__ == "__main__":
    main(measure, "Agreement of many ranks", ranks=1000)
