"""Reads a trace in any supported format, which it detects from the content of the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from spotladder.api.trace import read_document
from spotladder.errors import InvalidSpec
from spotladder.sim.readers import (
    availability,
    karpenter_log,
    kubernetes_events,
    node_counts,
    node_events,
    price_history,
    probes,
    region,
    windows,
)
from spotladder.sim.readers.polarity import Doubt, Polarity, doubt
from spotladder.sim.readers.text import lines, rows
from spotladder.sim.trace import Trace, tick_length

_EVENT = re.compile(r"[0-9.]+,\s*(add|remove)\b")
_COUNT = re.compile(r"\d{4}-\d\d-\d\d\s*,")
PROBES = "probes, CSV"
PRICE_HISTORY = "spot price history, JSON"
SUFFIXES = (".json", ".csv", ".txt", ".log")


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace as it was read. `format` is the name of its format in docs/simulator.md, `one` what a 1 means in it; None
    for a format without 1s."""

    trace: Trace
    format: str
    one: Polarity | None = None


def read_trace(path: Path, polarity: Polarity | None = None, *, sort: bool = False) -> Trace:
    """The trace in a file. Raises InvalidSpec for an invalid file or an unknown format.

    `polarity` overrides what a 1 means: in JSON it means preempted, in CSV the header says it. `sort`: lines of node
    counts may be in any order.
    """
    return read(path, polarity, sort=sort).trace


def read_traces(paths: Sequence[Path], polarity: Polarity | None = None, *, sort: bool = False) -> list[Trace]:
    """The traces of `read_all`."""
    return [reading.trace for reading in read_all(paths, polarity, sort=sort)]


def read_all(paths: Sequence[Path], polarity: Polarity | None = None, *, sort: bool = False) -> list[Reading]:
    """The traces of one zone: of all files; for a folder, of the traces in it. Raises InvalidSpec, also for ticks of
    several lengths, and for traces whose polarity is certainly wrong, unless `polarity` confirms it."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES) if path.is_dir() else [path]
        if not inside:
            raise InvalidSpec(f"has no traces (expected files that end in {', '.join(SUFFIXES)})", where=str(path))
        files += inside
    return _checked([read(file, polarity, sort=sort) for file in files], polarity, paths[0])


def read_zones(path: Path, polarity: Polarity | None = None, *, sort: bool = False) -> list[list[Reading]]:
    """The traces of each zone of a file or a folder. Only a log of probes has several zones. Raises InvalidSpec, as
    `read_all`."""
    header = [] if path.is_dir() or path.suffix == ".json" else _header(path)
    if not probes.fits(header):
        return [read_all([path], polarity, sort=sort)]
    zones, one = probes.read(path)
    return [_checked([_as(polarity, Reading(trace, PROBES, one))], polarity, path) for trace in zones.values()]


def _checked(readings: list[Reading], polarity: Polarity | None, path: Path) -> list[Reading]:
    """These traces of one zone. Raises InvalidSpec for ticks of several lengths, and for traces whose polarity is
    certainly wrong, unless it was given."""
    tick_length([reading.trace for reading in readings])
    found = None if polarity is not None else doubted(readings)
    if found is not None and found.certain:
        raise InvalidSpec(found.sentence, where=str(path))
    return readings


def doubted(readings: Sequence[Reading]) -> Doubt | None:
    """The sign that the polarity of these traces of one zone is wrong, if there is one."""
    flags = [reading for reading in readings if reading.one is not None]
    if not flags or len(flags) < len(readings):
        return None
    return doubt([reading.trace for reading in flags], flags[0].one or Polarity.AVAILABLE)


def read(path: Path, polarity: Polarity | None = None, *, sort: bool = False) -> Reading:
    """The trace in a file, with its format, as `read_trace`."""
    return _as(polarity, _read(path, sort=sort))


def _as(polarity: Polarity | None, found: Reading) -> Reading:
    """The trace with this meaning of a 1; None: that of its format."""
    if polarity is None or polarity is (found.one or Polarity.AVAILABLE):
        return found
    return replace(found, trace=found.trace.inverted(), one=polarity)


def _read(path: Path, *, sort: bool) -> Reading:
    first = next(lines(path), (0, ""))[1]
    if karpenter_log.fits(first):
        return Reading(karpenter_log.read(path), "Karpenter log, JSON lines")
    if path.suffix == ".json":
        document = read_document(path)
        if kubernetes_events.fits(document):
            return Reading(kubernetes_events.parse(document, path), "Kubernetes events, JSON")
        if price_history.fits(document):
            return Reading(price_history.parse(document, path), PRICE_HISTORY)
        metadata = document.get("metadata") if isinstance(document, dict) else None
        priced = isinstance(metadata, dict) and ("price_info" in metadata or "zone" in metadata)
        if priced or (isinstance(document, dict) and "prices" in document):
            return Reading(region.read(path), "one zone with prices, JSON", Polarity.PREEMPTED)
        return Reading(windows.read(path), "windows, JSON", Polarity.PREEMPTED)
    header = _header(path)
    line = ",".join(header)
    if not line:
        raise InvalidSpec("is empty: use a trace", where=str(path))
    if _EVENT.match(line):
        return Reading(node_events.read(path), "node events, CSV")
    if _COUNT.match(line):
        return Reading(node_counts.read(path, sort=sort), "node counts, text")
    if probes.fits(header):
        zones, meaning = probes.read(path)
        return Reading(probes.single(path, zones), PROBES, meaning)
    if header[0] == "time":
        one = next((polarity for polarity in Polarity if header[1:2] == [polarity]), None)
        return Reading(availability.read(path), "availability, CSV", one)
    raise InvalidSpec(
        "has an unknown format (expected time,available – timestamp,zone,ok – milliseconds,add|remove,node – date, "
        "time, count – or JSON): see docs/simulator.md",
        path="line 1",
        where=str(path),
    )


def _header(path: Path) -> list[str]:
    return next(rows(path), (0, [""]))[1]
