"""Ray's description of a node."""

from __future__ import annotations

from typing import Any


def node(name: str, *, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"NodeID": name, "Alive": alive, "Resources": resources or {"CPU": 4.0}}
