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

from pydantic import AwareDatetime, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from spotladder.sim.readers import node_claims
from spotladder.sim.readers.node_claims import Change, ClaimEvent
from spotladder.sim.readers.text import validated
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


class _Object(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class About(_Object):
    """The object of an event."""

    kind: str = ""
    name: str = ""


class Event(_Object):
    """An event of the API `v1` or `events.k8s.io/v1`, which name the same fields differently."""

    reason: str | None = None
    message: str | None = None
    note: str | None = None
    involved_object: About | None = None
    regarding: About | None = None
    event_time: AwareDatetime | None = None
    last_timestamp: AwareDatetime | None = None
    deprecated_last_timestamp: AwareDatetime | None = None
    first_timestamp: AwareDatetime | None = None
    deprecated_first_timestamp: AwareDatetime | None = None

    def shows(self, change: Change | None) -> Iterator[ClaimEvent]:
        """This change of the event's object; nothing without one, the name of an object or a time."""
        about = self.involved_object or self.regarding
        last, first = self.last_timestamp or self.deprecated_last_timestamp, self.first_timestamp
        at = self.event_time or last or first or self.deprecated_first_timestamp
        if change is not None and about is not None and about.name and at is not None:
            yield ClaimEvent(at.timestamp(), about.name, change)

    @property
    def is_of_claim(self) -> bool:
        """Whether its object is a NodeClaim."""
        about = self.involved_object or self.regarding
        return about is not None and about.kind == NODE_CLAIM


class Events(_Object):
    """The output of kubectl."""

    items: list[Event]


def fits(document: Any) -> bool:
    """Whether this parsed JSON is a list of Kubernetes objects."""
    return isinstance(document, dict) and document.get("kind") in KINDS and isinstance(document.get("items"), list)


def parse(document: Any, path: Path) -> Trace:
    """The number of nodes over time, from the first of these events to the last one. Raises InvalidSpec, located at the
    field."""
    events = validated(Events, document, path).items
    claims = [change for event in events if event.is_of_claim for change in event.shows(_change(event))]
    nodes = [change for event in events for change in event.shows(NODE_CHANGES.get(event.reason or ""))]
    return node_claims.trace(claims or nodes, path)


def _change(event: Event) -> Change | None:
    """The change of a NodeClaim that the event reports."""
    reason, message = event.reason or "", event.message or event.note or ""
    if message.startswith(TRANSITION):
        return CONDITIONS.get(reason) if IS_TRUE in message else None
    return CHANGES.get(reason)
