"""Samples of capacity in CSV, one line each: `time,available`, `timestamp,zone,ok` or `time,nodes,price`.

The columns may be in any order. The time is in a column `time` or `timestamp`, in seconds or ISO 8601. The capacity is
in a column `available`, `ok` or `preempted`, as 0, 1, true or false, or as a number in a column `nodes`. `price` is in
USD per node-hour. With a column `zone` a file may have several zones.

Each sample holds until the next one of its zone, and the last one as long as the one before it. A pause longer than
MOST_PAUSE times the median interval of the zone is refused: nothing is known about the capacity in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from spotladder.api.problems import quoted
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import count, number, refused, rows
from spotladder.sim.readers.times import time_of_line
from spotladder.sim.trace import MOST_USD, UNLIMITED, Trace

MOST_PAUSE = 6
"""Maximum time between two samples of a zone, in median intervals."""

TIMES = ("time", "timestamp")

ZONE, NODES, PRICE = "zone", "nodes", "price"

ANSWERS = {"ok": True, "available": True, "preempted": False}
"""The columns of an answer, and whether a 1 in them means that there was capacity."""

VALUES = {"0": False, "1": True, "false": False, "true": True}

Sample = tuple[int, Instant, int, float]
"""The number of the line, the time, the number of nodes, and the price."""


def read(path: Path) -> list[Trace]:
    """The traces of the zones, in the order of their first samples. Raises InvalidSpec, located at the line."""
    lines = rows(path)
    _, header = next(lines, (0, []))
    time, answer = _columns(path, header)
    found: dict[str, list[Sample]] = {}
    for line, fields in lines:
        if len(fields) != len(header):
            raise refused(path, line, f"expected {','.join(header)}, got {quoted(','.join(fields))}: correct the line")
        row = dict(zip(header, fields, strict=True))
        zone = row.get(ZONE, path.stem)
        if not zone:
            raise refused(path, line, "expected the name of a zone: add it, or remove the line", ZONE)
        nodes = _nodes(path, line, answer, row[answer])
        price = number(path, line, PRICE, row[PRICE], least=0, most=MOST_USD) if PRICE in row else 0.0
        found.setdefault(zone, []).append((line, time_of_line(path, line, time, row[time]), nodes, price))
    if not found:
        raise InvalidSpec("has no samples: add lines", where=str(path))
    return [_trace(path, zone, samples, priced=PRICE in header) for zone, samples in found.items()]


def _columns(path: Path, header: Sequence[str]) -> tuple[str, str]:
    """The names of the columns of the time and of the capacity."""
    times = [name for name in header if name in TIMES]
    answers = [name for name in header if name in (*ANSWERS, NODES)]
    known = {*times, *answers, ZONE, PRICE}
    if len(times) != 1 or len(answers) != 1 or len(set(header)) < len(header) or not known.issuperset(header):
        expected = "a time or timestamp, one of available, ok, preempted and nodes, and optionally a zone and a price"
        raise refused(path, 1, f"expected the columns {expected}, got {quoted(','.join(header))}: correct it")
    return times[0], answers[0]


def _nodes(path: Path, line: int, column: str, text: str) -> int:
    if column == NODES:
        return count(path, line, column, text)
    if text.lower() not in VALUES:
        raise refused(path, line, f"expected 0, 1, true or false, got {quoted(text)}: correct the line", column)
    return UNLIMITED if VALUES[text.lower()] is ANSWERS[column] else 0


def _trace(path: Path, zone: str, samples: Sequence[Sample], *, priced: bool) -> Trace:
    if len(samples) < 2:
        raise InvalidSpec(f"has fewer than two samples of zone {quoted(zone)}: add more", where=str(path))
    numbers, times, nodes, prices = zip(*samples, strict=True)
    intervals = np.diff(times)
    if (intervals <= 0).any():
        line = numbers[int(np.argmax(intervals <= 0)) + 1]
        raise refused(path, line, f"is not after the sample before it of zone {quoted(zone)}: sort the file")
    usual = median(intervals.tolist())
    if (intervals > MOST_PAUSE * usual).any():
        pause = int(np.argmax(intervals > MOST_PAUSE * usual))
        message = (
            f"no sample of zone {quoted(zone)} in the {intervals[pause]:g} s before it (expected one every {usual:g} "
            f"s, and no pause over {MOST_PAUSE * usual:g} s): split the file here"
        )
        raise refused(path, numbers[pause + 1], message)
    return Trace(
        zone,
        np.array(times) - times[0],
        np.array(nodes, dtype=np.int64),
        float(times[-1] - times[0] + intervals[-1]),
        prices=np.array(prices) if priced else None,
        origin=times[0] or None,
        source=str(path),
    )
