"""Traces of node events: `milliseconds,add|remove,node`, as recorded from real spot clusters.

A file may contain several recordings that each begin at 0. They are concatenated; each starts without nodes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spotladder.api.problems import quoted
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import number, refused, rows
from spotladder.sim.trace import Trace

_FORMAT = "milliseconds,add|remove,node"


def read(path: Path) -> Trace:
    """The number of nodes over time. The trace ends at the last event. Raises InvalidSpec, located at the line."""
    held: set[str] = set()
    counts: dict[Seconds, int] = {}
    began = before = 0.0
    for line, fields in rows(path):
        if len(fields) != 3:
            raise refused(path, line, f"expected {_FORMAT}, got {quoted(','.join(fields))}: correct the line")
        time, event, node = number(path, line, "milliseconds", fields[0], least=0) / 1000, fields[1], fields[2]
        if time == 0.0 < before:
            began, before = began + before, 0.0
            held.clear()
        if time < before:
            raise refused(
                path, line, f"is not in order of time (expected {1000 * before:g} or later, got {fields[0]}): sort it"
            )
        _apply(held, event, node, path, line)
        before = time
        counts[began + time] = len(held)
    if len(counts) < 2:
        raise InvalidSpec(f"has no time between events (expected lines of {_FORMAT}): add more", where=str(path))
    if 0.0 not in counts:
        counts = {0.0: 0, **counts}
    times = np.array(list(counts))
    return Trace(path.stem, times, np.array(list(counts.values()), dtype=np.int64), float(times[-1]), source=str(path))


def _apply(held: set[str], event: str, node: str, path: Path, line: int) -> None:
    match event:
        case "add" if node not in held:
            held.add(node)
        case "add":
            raise refused(path, line, f"node {quoted(node)} is added twice: remove the line, or add its removal")
        case "remove" if node in held:
            held.remove(node)
        case "remove":
            raise refused(path, line, f"node {quoted(node)} is removed and was not added: remove the line")
        case _:
            raise refused(path, line, f"expected add or remove, got {quoted(event)}: correct the line", "event")
