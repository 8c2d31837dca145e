"""Log of Karpenter: the capacity of its spot NodeClaims over time, from `kubectl logs deployment/karpenter`.

One JSON object a line, such as `{"time": "2026-01-01T00:00:00Z", "message": "launched nodeclaim", "NodeClaim": {"name":
"gpu-x7k2p"}, "capacity-type": "spot"}`; before Karpenter 1.0, `nodeclaim` has the name. Other lines are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spotladder.sim.readers import node_claims
from spotladder.sim.readers.node_claims import Change, ClaimEvent
from spotladder.sim.readers.text import lines, refused
from spotladder.sim.readers.times import instant
from spotladder.sim.trace import Trace

CHANGES = {
    "launched nodeclaim": Change.LAUNCHED,
    "initiating delete from interruption message": Change.RECLAIMED,
    "garbage collecting nodeclaim with no cloudprovider representation": Change.RECLAIMED,
    "deleted nodeclaim": Change.RELEASED,
}
"""The messages of the log that change a NodeClaim."""

NO_CAPACITY = "insufficient capacity"
"""Part of the message or the error of a launch that fails for lack of capacity."""


def fits(line: str) -> bool:
    """Whether this is a line of the log."""
    if '"level"' not in line or '"message"' not in line:
        return False
    try:
        entry = json.loads(line)
    except ValueError:
        return False
    return isinstance(entry, dict) and isinstance(entry.get("message"), str) and "level" in entry


def read(path: Path) -> Trace:
    """The number of spot nodes of all NodeClaims. Raises InvalidSpec, located at the line."""
    return node_claims.trace(list(_events(path)), path)


def _events(path: Path) -> Iterator[ClaimEvent]:
    on_demand = set[str]()
    for number, line in lines(path):
        if not line.startswith("{"):
            continue
        try:
            entry: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise refused(path, number, f"is not valid JSON ({error}): correct or remove the line") from None
        change, name = _change(entry), _name(entry)
        if change is Change.LAUNCHED and entry.get("capacity-type", "spot") != "spot":
            on_demand.add(name)
        if change is not None and name not in on_demand:
            yield ClaimEvent(instant(entry.get("time"), f"line {number}, time", path), name, change)


def _change(entry: dict[str, Any]) -> Change | None:
    message = str(entry.get("message"))
    if entry.get("level") == "ERROR" and NO_CAPACITY in f"{message} {entry.get('error', '')}":
        return Change.REFUSED
    return CHANGES.get(message)


def _name(entry: dict[str, Any]) -> str:
    found = entry.get("NodeClaim") or entry.get("nodeclaim")
    return str(found.get("name") if isinstance(found, dict) else found)
