"""Samples of capacity in CSV, one line each: `time,available`, `timestamp,zone,ok` or `time,nodes,price`.

The columns may be in any order. The time is in a column `time` or `timestamp`, in seconds or ISO 8601. The capacity is
in a column `available`, `ok` or `preempted`, as 0, 1, true or false, or as a number in a column `nodes`. `price` is in
USD per node-hour. With a column `zone` a file may have several zones.

Each sample holds until the next one of its zone, and the last one as long as the one before it. A pause longer than
MAX_PAUSE times the median interval of the zone is refused: nothing is known about the capacity in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

import numpy as np
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from spotladder.api.problems import quoted
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import refused, rows, validated
from spotladder.sim.trace import MAX_NODES, MAX_USD, UNLIMITED, Trace

MAX_PAUSE = 6
"""Maximum time between two samples of a zone, in median intervals."""

TIMES = ("time", "timestamp")

ANSWERS = ("available", "ok", "preempted", "nodes")
"""The columns of the capacity, of which a file has one."""

PRICE = "price"


class Sample(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(allow_inf_nan=False)

    time: datetime = Field(validation_alias=AliasChoices(*TIMES))
    available: bool = Field(False, validation_alias=AliasChoices("available", "ok"))
    preempted: bool = True
    nodes: int | None = Field(None, ge=0, le=MAX_NODES)
    zone: str = Field("", min_length=1)
    price: float = Field(0.0, ge=0, le=MAX_USD)

    @property
    def at(self) -> Instant:
        """Its time, in UTC without a time zone."""
        return (self.time if self.time.tzinfo else self.time.replace(tzinfo=UTC)).timestamp()

    @property
    def capacity(self) -> int:
        """The number of nodes."""
        return self.nodes if self.nodes is not None else UNLIMITED if self.available or not self.preempted else 0


def read(path: Path) -> list[Trace]:
    """The traces of the zones, in the order of their first samples. Raises InvalidSpec, located at the line."""
    lines = rows(path)
    _, header = next(lines, (0, []))
    _check(path, header)
    found: dict[str, list[tuple[int, Sample]]] = {}
    for line, fields in lines:
        if len(fields) != len(header):
            raise refused(path, line, f"expected {','.join(header)}, got {quoted(','.join(fields))}: correct the line")
        sample = validated(Sample, dict(zip(header, fields, strict=True)), path, line)
        found.setdefault(sample.zone or path.stem, []).append((line, sample))
    if not found:
        raise InvalidSpec("has no samples: add lines", where=str(path))
    return [_trace(path, zone, samples, priced=PRICE in header) for zone, samples in found.items()]


def _check(path: Path, header: Sequence[str]) -> None:
    """Raises InvalidSpec unless these are columns of a file."""
    times, answers = (sum(name in header for name in names) for names in (TIMES, ANSWERS))
    known = {*TIMES, *ANSWERS, "zone", PRICE}
    if (times, answers) != (1, 1) or len(set(header)) < len(header) or not known.issuperset(header):
        expected = "a time or timestamp, one of available, ok, preempted and nodes, and optionally a zone and a price"
        raise refused(path, 1, f"expected the columns {expected}, got {quoted(','.join(header))}: correct it")


def _trace(path: Path, zone: str, samples: Sequence[tuple[int, Sample]], *, priced: bool) -> Trace:
    if len(samples) < 2:
        raise InvalidSpec(f"has fewer than two samples of zone {quoted(zone)}: add more", where=str(path))
    numbers, times = zip(*((line, sample.at) for line, sample in samples), strict=True)
    intervals = np.diff(times)
    if (intervals <= 0).any():
        line = numbers[int(np.argmax(intervals <= 0)) + 1]
        raise refused(path, line, f"is not after the sample before it of zone {quoted(zone)}: sort the file")
    usual = median(intervals.tolist())
    if (intervals > MAX_PAUSE * usual).any():
        pause = int(np.argmax(intervals > MAX_PAUSE * usual))
        message = (
            f"no sample of zone {quoted(zone)} in the {intervals[pause]:g} s before it (expected one every {usual:g} "
            f"s, and no pause over {MAX_PAUSE * usual:g} s): split the file here"
        )
        raise refused(path, numbers[pause + 1], message)
    return Trace(
        zone,
        np.array(times) - times[0],
        np.array([sample.capacity for _, sample in samples], dtype=np.int64),
        float(times[-1] - times[0] + intervals[-1]),
        prices=np.array([sample.price for _, sample in samples]) if priced else None,
        origin=times[0] or None,
        source=str(path),
    )
