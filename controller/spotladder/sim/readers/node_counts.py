"""Counts of held nodes over time: `date, time, count`, for example `2021-12-11, 11:11:30, 55`, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from spotladder.api.problems import quoted
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import count, refused, rows
from spotladder.sim.trace import Trace

_FORMAT = "2021-12-11, 11:11:30, 55"


def read(path: Path, *, sort: bool = False) -> Trace:
    """The number of nodes over time. `sort`: the lines may be in any order; of several lines with the same time, the
    last one applies. The trace ends at the last line. Raises InvalidSpec with the line."""
    counts: dict[float, int] = {}
    before = 0.0
    for line, fields in rows(path):
        if len(fields) != 3:
            raise refused(path, line, f"expected {_FORMAT}, got {quoted(','.join(fields))}: correct the line")
        time = _instant(path, line, f"{fields[0]} {fields[1]}")
        if time < before and not sort:
            raise refused(
                path,
                line,
                f"is not in order of time ({fields[0]} {fields[1]} after a later one): sort it or specify --sort",
            )
        before = max(before, time)
        counts[time] = count(path, line, "count", fields[2])
    if len(counts) < 2:
        raise InvalidSpec(f"has fewer than two times (expected lines as {_FORMAT}): add more", where=str(path))
    ordered = sorted(counts)
    times = np.array(ordered) - ordered[0]
    nodes = np.array([counts[time] for time in ordered], dtype=np.int64)
    return Trace(path.stem, times, nodes, float(times[-1]), origin=ordered[0], source=str(path))


def _instant(path: Path, line: int, text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise refused(
            path, line, f"expected a date and a time as in {_FORMAT}, got {quoted(text)}: correct it"
        ) from None
