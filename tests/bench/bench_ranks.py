"""Join, agreement and commit of many ranks: the real channel of rank 0, and simulated other ranks on this machine."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from tests.bench.rows import Row, limited, main
from tests.train.many_ranks import ManyRanks

UNIT = 1 << 10 if sys.platform == "darwin" else 1
"""Size of the unit of `ru_maxrss` is 1 byte on macOS and 1 KiB on Linux."""

JOIN_LIMIT = 10.0
AGREEMENT_LIMIT = 1.0
"""Seconds for the number of ranks that is measured first; `MORE` times as many may take `MORE` times as long."""

MORE = 4
"""Each rank has its connection to rank 0: the second group shows whether its cost grows faster than its size."""


def rss() -> float:
    """Peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / UNIT / 1024


@dataclass(frozen=True)
class Figures:
    """One commit of one group: seconds, and the messages of rank 0 for each other rank."""

    join: float
    agreement: float
    commit: float
    messages: float

    @classmethod
    def of(cls, ranks: int) -> Self:
        group = ManyRanks(ranks)
        began = time.perf_counter()
        with group.joined():
            joined = time.perf_counter()
            group.agree()
            agreed = time.perf_counter()
            group.commit()
            committed = time.perf_counter()
        return cls(joined - began, agreed - joined, committed - agreed, group.messages / (ranks - 1))


def measure(ranks: int) -> Sequence[Row]:
    before = rss()
    first = Figures.of(ranks)
    memory = rss() - before  # Of the first group: the peak of the process includes it in the second one.
    more = Figures.of(MORE * ranks)
    return [
        *_rows(f"{ranks:,} ranks", first, 1),
        Row(f"{ranks:,} ranks: memory of rank 0's channel and commit", memory, "MiB", "–"),
        *_rows(f"{MORE * ranks:,} ranks", more, MORE),
    ]


def _rows(name: str, figures: Figures, times: int) -> list[Row]:
    """The rows of a group with `times` the size of the first one."""
    return [
        limited(f"{name}: start of their process → all have joined", figures.join, "s", times * JOIN_LIMIT),
        limited(f"{name}: agreement on the step of a commit", figures.agreement, "s", times * AGREEMENT_LIMIT),
        Row(f"{name}: commit of one file of each rank", figures.commit, "s", "agreement", figures.agreement),
        Row(f"{name}: messages of rank 0 per commit and rank", figures.messages, "", "–"),
    ]


if __name__ == "__main__":
    main(measure, "Agreement and commit of many ranks", ranks=1000)
