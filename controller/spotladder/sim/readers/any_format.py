"""Reads a trace in any supported format, which it detects from the content of the file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spotladder.errors import InvalidSpec
from spotladder.sim.readers import csv_samples, kubernetes_events, price_history
from spotladder.sim.readers.text import read_text, rows
from spotladder.sim.trace import Trace

PRICE_HISTORY = "spot price history, JSON"
SUFFIXES = (".json", ".csv")


@dataclass(frozen=True, slots=True)
class Reading:
    """A trace as it was read. `format` is the name of its format in docs/simulator.md."""

    trace: Trace
    format: str


def read_zones(path: Path) -> list[list[Reading]]:
    """The traces of each zone of a file, or of a folder, whose files are of one zone. Only a log of probes has several
    zones. Raises InvalidSpec for an invalid file and an unknown format."""
    if not path.is_dir():
        return [[reading] for reading in _read(path)]
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    if not files:
        raise InvalidSpec(f"has no traces (expected files that end in {', '.join(SUFFIXES)})", where=str(path))
    return [[_single(file, _read(file)) for file in files]]


def _single(path: Path, readings: Sequence[Reading]) -> Reading:
    """The trace of the only zone. Raises InvalidSpec for several."""
    if len(readings) > 1:
        zones = ", ".join(reading.trace.zone for reading in readings)
        raise InvalidSpec(f"has the zones {zones} (expected one): keep the lines of one of them", where=str(path))
    return readings[0]


def _read(path: Path) -> list[Reading]:
    if path.suffix == ".json":
        return [_read_json(path)]
    header = next(rows(path), (0, [""]))[1]
    if header == [""]:
        raise InvalidSpec("is empty: use a trace", where=str(path))
    if set(header) & set(csv_samples.TIMES):
        return [Reading(trace, "samples, CSV") for trace in csv_samples.read(path)]
    raise InvalidSpec(
        "has an unknown format (expected samples with a time or timestamp, or JSON): see docs/simulator.md",
        path="line 1",
        where=str(path),
    )


def _read_json(path: Path) -> Reading:
    document = _document(path)
    if kubernetes_events.fits(document):
        return Reading(kubernetes_events.parse(document, path), "Kubernetes events, JSON")
    if price_history.fits(document):
        return Reading(price_history.parse(document, path), PRICE_HISTORY)
    raise InvalidSpec(
        "has an unknown format (expected a list of Kubernetes events, or a spot price history of AWS): see "
        "docs/simulator.md",
        where=str(path),
    )


def _document(path: Path) -> Any:
    """The parsed file. Raises InvalidSpec for one that is missing or torn."""
    try:
        return json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise InvalidSpec(
            f"is not valid JSON ({error}): write a trace in a format of docs/simulator.md", where=str(path)
        ) from None
