"""Events of Kubernetes: the nodes of a cluster over time, from `kubectl get events -A -o json`.

The node lifecycle controller records RegisteredNode and RemovingNode for every node, whatever creates it (Karpenter, a
node group, a cluster autoscaler). A node that is removed without having been registered was there from the start.
Remove the events of other nodes from the file to get the trace of one pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.times import instant
from spotladder.sim.trace import Trace

KINDS = frozenset({"List", "EventList"})
"""Values of `kind` in the output of kubectl and of the API server."""

REGISTERED, REMOVED = "RegisteredNode", "RemovingNode"

_TIMES = ("eventTime", "lastTimestamp", "deprecatedLastTimestamp", "firstTimestamp", "deprecatedFirstTimestamp")


def fits(document: Any) -> bool:
    """Whether this parsed JSON is a list of Kubernetes objects."""
    return isinstance(document, dict) and document.get("kind") in KINDS and isinstance(document.get("items"), list)


def parse(document: Any, path: Path) -> Trace:
    """The number of nodes over time, from the first of these events to the last one. Raises InvalidSpec, located at the
    field."""
    events = sorted(_changes(document, path), key=lambda event: event[0])
    if not events or events[0][0] == events[-1][0]:
        raise InvalidSpec(
            f"has no time between events of nodes (expected {REGISTERED} and {REMOVED}): keep events for longer",
            where=str(path),
        )
    held, began = _first_nodes(events), events[0][0]
    counts = {0.0: len(held)}
    for at, node, added in events:
        held = held | {node} if added else held - {node}
        counts[at - began] = len(held)
    times = np.array(list(counts))
    nodes = np.array(list(counts.values()), dtype=np.int64)
    return Trace(path.stem, times, nodes, float(times[-1]), origin=began, source=str(path))


def _first_nodes(events: list[tuple[Instant, str, bool]]) -> frozenset[str]:
    """The nodes whose first event is their removal."""
    first: dict[str, bool] = {}
    for _at, node, added in events:
        first.setdefault(node, added)
    return frozenset(node for node, added in first.items() if not added)


def _changes(document: Any, path: Path) -> Iterator[tuple[Instant, str, bool]]:
    """The time, the node, and whether it was added, for each event of a node."""
    for index, item in enumerate(document["items"]):
        if not isinstance(item, dict) or item.get("reason") not in (REGISTERED, REMOVED):
            continue
        about = item.get("involvedObject") or item.get("regarding") or {}
        name = about.get("name") if isinstance(about, dict) else None
        if not isinstance(name, str) or not name:
            raise InvalidSpec(
                "expected the name of a node", path=f"items[{index}].involvedObject.name", where=str(path)
            )
        time = next((item[key] for key in _TIMES if item.get(key)), None)
        yield instant(time, f"items[{index}].lastTimestamp", path), name, item["reason"] == REGISTERED
