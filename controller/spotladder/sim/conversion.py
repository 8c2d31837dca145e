"""Writes a trace as availability in CSV, the format that other tools read and write most easily."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec, not_written
from spotladder.sim.readers.any_format import Reading

SAMPLE: Seconds = 600.0
"""The interval at which a trace of events is sampled."""


def write(file: Path, zones: Mapping[str, Sequence[Reading]]) -> None:
    """Write the only trace as `time,nodes` or `time,available`, with `,price` if it has prices, one line per tick; a
    trace of events is sampled every SAMPLE seconds. Raises InvalidSpec for several traces, EnvironmentFailure if the
    file cannot be written."""
    readings = [reading for found in zones.values() for reading in found]
    if len(readings) != 1:
        raise InvalidSpec(f"expected one trace, got {len(readings)}: name one file", path="--convert")
    trace, gap = readings[0].trace, readings[0].trace.gap or SAMPLE
    moments = np.arange(0.0, trace.end, gap)
    values = trace.at(moments) if trace.counted else trace.ticks(gap).astype(np.int64)
    prices = trace.price_ticks(gap)
    header = f"time,{'nodes' if trace.counted else 'available'}{'' if prices is None else ',price'}"
    columns = [[f"{moment:.15g}" for moment in (moments + (trace.origin or 0.0)).tolist()], map(str, values.tolist())]
    if prices is not None:
        columns.append([f"{price:.15g}" for price in prices.tolist()])
    try:
        file.write_text("\n".join([header, *map(",".join, zip(*columns, strict=True))]) + "\n", encoding="utf-8")
    except OSError as error:
        raise not_written("--convert", file, error) from None
