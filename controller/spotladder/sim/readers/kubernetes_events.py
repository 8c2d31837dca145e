"""Events of Kubernetes: the nodes of a cluster over time, from `kubectl get events -A -o json`.

If the file has events of Karpenter's NodeClaims, `node_claims` computes the capacity from them. Else it is the number
of nodes: the node lifecycle controller records RegisteredNode and RemovingNode for every node, whatever creates it (a
node group, a cluster autoscaler). A node that is removed without having been registered was there from the start.
Remove the events of other nodes from the file to get the trace of one pool.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers import node_claims
from spotladder.sim.readers.node_claims import Change, ClaimEvent
from spotladder.sim.readers.times import instant
from spotladder.sim.trace import Trace

KINDS = frozenset({"List", "EventList"})
"""Values of `kind` in the output of kubectl and of the API server."""

NODE_CHANGES = {"RegisteredNode": Change.LAUNCHED, "RemovingNode": Change.RECLAIMED}
"""Reasons of the node lifecycle controller's events."""

NODE_CLAIM = "NodeClaim"

CONDITIONS = {
    "Launched": Change.LAUNCHED,
    "Registered": Change.LAUNCHED,
    "Drained": Change.RELEASED,
    "InstanceTerminating": Change.RELEASED,
}
"""Conditions of a NodeClaim; the reason of an event is the condition that changes, and its message ends the change with
`-> True`."""

CHANGES = {
    "SpotInterrupted": Change.RECLAIMED,
    "TerminatingOnInterruption": Change.RECLAIMED,
    "InstanceStopping": Change.RECLAIMED,
    "InstanceTerminating": Change.RECLAIMED,
    "DisruptionTerminating": Change.RELEASED,
    "InsufficientCapacityError": Change.REFUSED,
}
"""Reasons of Karpenter's other events about a NodeClaim."""

IS_TRUE = "-> True"
"""Part of the message of an event about a condition that becomes true."""

TRANSITION = "Status condition transitioned"
"""Beginning of the message of an event about a condition."""

_TIMES = ("eventTime", "lastTimestamp", "deprecatedLastTimestamp", "firstTimestamp", "deprecatedFirstTimestamp")


def fits(document: Any) -> bool:
    """Whether this parsed JSON is a list of Kubernetes objects."""
    return isinstance(document, dict) and document.get("kind") in KINDS and isinstance(document.get("items"), list)


def parse(document: Any, path: Path) -> Trace:
    """The number of nodes over time, from the first of these events to the last one. Raises InvalidSpec, located at the
    field."""
    events = list(_claim_events(document, path)) or list(_node_events(document, path))
    return node_claims.trace(events, path)


def _node_events(document: Any, path: Path) -> Iterator[ClaimEvent]:
    """The changes of nodes: each one that is removed is lost."""
    for index, item in enumerate(document["items"]):
        if isinstance(item, dict) and (change := NODE_CHANGES.get(item.get("reason", ""))) is not None:
            yield ClaimEvent(_time(item, index, path), _name(item, index, "node", path), change)


def _claim_events(document: Any, path: Path) -> Iterator[ClaimEvent]:
    """The changes of Karpenter's NodeClaims."""
    for index, item in enumerate(document["items"]):
        if not isinstance(item, dict) or _about(item).get("kind") != NODE_CLAIM:
            continue
        reason, message = item.get("reason"), str(item.get("message") or item.get("note"))
        if message.startswith(TRANSITION):
            change = CONDITIONS.get(str(reason)) if IS_TRUE in message else None
        else:
            change = CHANGES.get(str(reason))
        if change is not None:
            yield ClaimEvent(_time(item, index, path), _name(item, index, NODE_CLAIM, path), change)


def _about(item: dict[str, Any]) -> dict[str, Any]:
    """The object of an event."""
    found = item.get("involvedObject") or item.get("regarding")
    return found if isinstance(found, dict) else {}


def _name(item: dict[str, Any], index: int, kind: str, path: Path) -> str:
    name = _about(item).get("name")
    if not isinstance(name, str) or not name:
        raise InvalidSpec(f"expected the name of a {kind}", path=f"items[{index}].involvedObject.name", where=str(path))
    return name


def _time(item: dict[str, Any], index: int, path: Path) -> Instant:
    return instant(next((item[key] for key in _TIMES if item.get(key)), None), f"items[{index}].lastTimestamp", path)
