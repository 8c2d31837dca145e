"""Reads a trace in any supported format, which it detects from the content of the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from spotladder.api.trace import read_document
from spotladder.errors import InvalidSpec
from spotladder.sim.readers import (
    availability,
    kubernetes_events,
    node_counts,
    node_events,
    price_history,
    region,
    windows,
)
from spotladder.sim.readers.text import rows
from spotladder.sim.trace import Trace

_EVENT = re.compile(r"[0-9.]+,\s*(add|remove)\b")
_COUNT = re.compile(r"\d{4}-\d\d-\d\d\s*,")
SUFFIXES = (".json", ".csv", ".txt")


class Polarity(StrEnum):
    """The meaning of a 1 in a trace."""

    AVAILABLE = "available"
    PREEMPTED = "preempted"


def read_trace(path: Path, polarity: Polarity | None = None, *, sort: bool = False) -> Trace:
    """The trace in a file. Raises InvalidSpec for an invalid file or an unknown format.

    `polarity` overrides what a 1 means: in JSON it means preempted, in CSV the header says it. `sort`: lines of node
    counts may be in any order.
    """
    trace, usual = _read(path, sort=sort)
    return trace if polarity is None or polarity is usual else trace.inverted()


def read_traces(paths: Sequence[Path], polarity: Polarity | None = None, *, sort: bool = False) -> list[Trace]:
    """The traces of all files; for a folder, of the traces in it. Raises InvalidSpec, also if no trace ever has
    capacity, unless `polarity` confirms the meaning of a 1."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise InvalidSpec(f"has no traces (expected files that end in {', '.join(SUFFIXES)})", where=str(path))
        files += inside
    traces = [read_trace(file, polarity, sort=sort) for file in files]
    if traces and polarity is None and all(trace.share() == 0.0 for trace in traces):
        _, usual = _read(files[0], sort=sort)
        opposite = Polarity.AVAILABLE if usual is Polarity.PREEMPTED else Polarity.PREEMPTED
        raise InvalidSpec(
            f"there is never capacity: does a 1 mean the opposite? Give --polarity {opposite}, or --polarity {usual} "
            "if there really was none",
            where=str(paths[0]),
        )
    return traces


def _read(path: Path, *, sort: bool) -> tuple[Trace, Polarity]:
    if path.suffix == ".json":
        document = read_document(path)
        if kubernetes_events.fits(document):
            return kubernetes_events.parse(document, path), Polarity.AVAILABLE
        if price_history.fits(document):
            return price_history.parse(document, path), Polarity.AVAILABLE
        metadata = document.get("metadata") if isinstance(document, dict) else None
        priced = isinstance(metadata, dict) and ("price_info" in metadata or "zone" in metadata)
        priced = priced or (isinstance(document, dict) and "prices" in document)
        return (region if priced else windows).read(path), Polarity.PREEMPTED
    line = ",".join(next(rows(path), (0, [""]))[1])
    if not line:
        raise InvalidSpec("is empty: use a trace", where=str(path))
    if _EVENT.match(line):
        return node_events.read(path), Polarity.AVAILABLE
    if _COUNT.match(line):
        return node_counts.read(path, sort=sort), Polarity.AVAILABLE
    header = line.split(",")
    if header[0] == "time":
        usual = Polarity.PREEMPTED if header[1:2] == ["preempted"] else Polarity.AVAILABLE
        return availability.read(path), usual
    raise InvalidSpec(
        "has an unknown format (expected time,available – milliseconds,add|remove,node – date, time, count – or JSON): "
        "see docs/simulator.md",
        path="line 1",
        where=str(path),
    )
