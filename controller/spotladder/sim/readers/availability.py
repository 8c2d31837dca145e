"""Availability in CSV: the header `time,available` or `time,preempted`, optionally `,price`, then one line per tick.

`time` is in seconds or ISO 8601. The second column is 0 or 1, or the number of nodes in a column `nodes`. `price` is in
USD per node-hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spotladder.api.problems import quoted
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import count, number, refused, rows
from spotladder.sim.readers.times import time_of_line
from spotladder.sim.trace import MOST_USD, UNLIMITED, Trace

HEADERS = ("available", "preempted", "nodes")


def read(path: Path) -> Trace:
    """The trace. All ticks are equally long. Raises InvalidSpec, located at the line."""
    lines = rows(path)
    _, header = next(lines, (0, []))
    if header[:1] != ["time"] or header[1:2] not in [[name] for name in HEADERS] or header[2:] not in ([], ["price"]):
        expected = "time,available or time,preempted or time,nodes, optionally with ,price"
        raise refused(path, 1, f"expected the header {expected}, got {quoted(','.join(header))}: correct it")
    times, nodes, prices, numbers = [], [], [], []
    for line, fields in lines:
        if len(fields) != len(header):
            raise refused(path, line, f"expected {','.join(header)}, got {quoted(','.join(fields))}: correct the line")
        numbers.append(line)
        times.append(time_of_line(path, line, "time", fields[0]))
        nodes.append(_nodes(path, line, header[1], fields[1]))
        if len(header) == 3:
            prices.append(number(path, line, "price", fields[2], least=0, most=MOST_USD))
    if len(times) < 2:
        raise InvalidSpec("has fewer than two samples: add more", where=str(path))
    gap = _gap(path, times, numbers)
    return Trace(
        path.stem,
        np.array(times) - times[0],
        np.array(nodes, dtype=np.int64),
        len(times) * gap,
        gap,
        np.array(prices) if prices else None,
        origin=times[0] if times[0] else None,
        source=str(path),
    )


def _nodes(path: Path, line: int, column: str, text: str) -> int:
    found = count(path, line, column, text)
    if column == "nodes":
        return found
    if found > 1:
        raise refused(path, line, f"expected 0 or 1, got {text}: correct the line, or call the column nodes", column)
    return UNLIMITED if bool(found) == (column == "available") else 0


def _gap(path: Path, times: Sequence[float], numbers: Sequence[int]) -> float:
    """The length of a tick in seconds. Raises InvalidSpec at the first line with another distance."""
    gap = times[1] - times[0]
    for before, after, line in zip(times, times[1:], numbers[1:], strict=False):
        distance = after - before
        if distance <= 0:
            raise refused(
                path, line, f"is not in order of time ({after:g} s after {before:g} s): sort the file", "time"
            )
        if abs(distance - gap) < 1e-6:
            continue
        ratio = distance / gap
        if ratio > 1 and abs(ratio - round(ratio)) < 1e-6:
            message = f"samples are missing before it (expected one every {gap:g} s, got {distance:g} s): fill the gap"
            raise refused(path, line, message, "time")
        raise refused(
            path,
            line,
            f"mixed tick sizes (expected {gap:g} s, got {distance:g} s): resample the file, or, if the lines are "
            "probes, name the first column timestamp",
            "time",
        )
    return gap
