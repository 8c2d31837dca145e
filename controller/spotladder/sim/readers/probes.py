"""Logs of probes for capacity in CSV, such as `timestamp,zone,ok`: one line per probe, at any intervals.

The columns may be in any order. The time is in a column `time` or `timestamp`, in seconds or ISO 8601. The answer is in
a column `ok`, `available` or `preempted`, as 0, 1, true or false. With a column `zone` a file may have several zones.

Each answer holds until the next probe of its zone. A pause longer than MOST_PAUSE times the median interval of the zone
is refused: nothing is known about the capacity in it. The trace ends with the last probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np

from spotladder.api.problems import quoted
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import refused, rows
from spotladder.sim.readers.times import time_of_line
from spotladder.sim.trace import UNLIMITED, Trace

MOST_PAUSE = 6
"""Maximum time between two probes of a zone, in median intervals."""

TIMES = ("time", "timestamp")

ZONE = "zone"

ANSWERS = {"ok": True, "available": True, "preempted": False}
"""The columns of the answer, and whether a 1 in them means that there was capacity."""

VALUES = {"0": False, "1": True, "false": False, "true": True}

Probe = tuple[int, Instant, bool]
"""The number of the line, the time, and whether there was capacity."""


def fits(header: Sequence[str]) -> bool:
    """Whether this is the header of a log of probes. `time,available` is one of equal ticks."""
    return any(name in header for name in TIMES) and any(name in header for name in ("timestamp", ZONE, "ok"))


def read(path: Path) -> list[Trace]:
    """The traces of the zones, in the order of their first probes. Raises InvalidSpec, located at the line."""
    lines = rows(path)
    _, header = next(lines, (0, []))
    time, answer = _columns(path, header)
    zoned = ZONE in header
    found: dict[str, list[Probe]] = {}
    for line, fields in lines:
        if len(fields) != len(header):
            raise refused(path, line, f"expected {','.join(header)}, got {quoted(','.join(fields))}: correct the line")
        row = dict(zip(header, fields, strict=True))
        zone = row[ZONE] if zoned else path.stem
        if not zone:
            raise refused(path, line, "expected the name of a zone: add it, or remove the line", ZONE)
        has = _answer(path, line, answer, row[answer]) is ANSWERS[answer]
        found.setdefault(zone, []).append((line, time_of_line(path, line, time, row[time]), has))
    if not found:
        raise InvalidSpec("has no probes: add lines", where=str(path))
    return [_trace(path, zone, probes) for zone, probes in found.items()]


def _columns(path: Path, header: Sequence[str]) -> tuple[str, str]:
    """The names of the columns of the time and of the answer."""
    times, answers = [name for name in header if name in TIMES], [name for name in header if name in ANSWERS]
    known = {*times, *answers, ZONE}
    if len(times) != 1 or len(answers) != 1 or len(set(header)) < len(header) or not known.issuperset(header):
        expected = "a time or timestamp, optionally a zone, and one of ok, available and preempted"
        raise refused(path, 1, f"expected the columns {expected}, got {quoted(','.join(header))}: correct it")
    return times[0], answers[0]


def _answer(path: Path, line: int, column: str, text: str) -> bool:
    if text.lower() not in VALUES:
        raise refused(path, line, f"expected 0, 1, true or false, got {quoted(text)}: correct the line", column)
    return VALUES[text.lower()]


def _trace(path: Path, zone: str, probes: Sequence[Probe]) -> Trace:
    if len(probes) < 2:
        raise InvalidSpec(f"has fewer than two probes of zone {quoted(zone)}: add more", where=str(path))
    numbers, times, flags = zip(*probes, strict=True)
    intervals = np.diff(times)
    if (intervals <= 0).any():
        line = numbers[int(np.argmax(intervals <= 0)) + 1]
        raise refused(path, line, f"is not after the probe before it of zone {quoted(zone)}: sort the file")
    usual = median(intervals.tolist())
    if (intervals > MOST_PAUSE * usual).any():
        pause = int(np.argmax(intervals > MOST_PAUSE * usual))
        message = (
            f"no probe of zone {quoted(zone)} in the {intervals[pause]:g} s before it (expected one every {usual:g} s, "
            f"and no pause over {MOST_PAUSE * usual:g} s): split the file here"
        )
        raise refused(path, numbers[pause + 1], message)
    nodes = np.where(flags, UNLIMITED, 0).astype(np.int64)
    began, ended = float(times[0]), float(times[-1])
    return Trace(zone, np.array(times) - began, nodes, ended - began, origin=began or None, source=str(path))
