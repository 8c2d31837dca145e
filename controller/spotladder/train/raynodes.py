"""The nodes of the Ray cluster, as Ray Train's controller sees them: which ones are silent, and how many have room.

Ray marks a lost node as dead after up to 21 s. Until then it lists the node as live, but the node accepts no
connection. A node that is only busy accepts connections.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

HEAD = "node:__internal_head__"
"""The resource that Ray gives to the head node."""

CONNECT_TIMEOUT = 1.0
"""Seconds in which a node accepts a connection."""

MAX_CONNECTIONS = 64

LONGEST_SILENCE = 2.0
"""Seconds without an accepted connection after which a node counts as lost. At least two connections fail in it."""


class SilentNodes:
    """Records when live worker nodes stopped accepting connections. Each controller process has one."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def ask(self, nodes: Iterable[dict[str, Any]]) -> dict[str, float]:
        """The live worker nodes among these that accept no connection now, and for how many seconds they have not."""
        asked = {node["NodeID"]: node for node in _live_workers(nodes)}
        if not asked:
            return {}
        now = time.monotonic()
        with ThreadPoolExecutor(min(len(asked), MAX_CONNECTIONS)) as pool:
            answers = dict(zip(asked, pool.map(_answers, asked.values()), strict=True))
        since = {name: self._since.get(name, now) for name, answered in answers.items() if not answered}
        self._since = {name: at for name, at in self._since.items() if name not in asked} | since
        return {name: now - at for name, at in since.items()}

    def lost(self, nodes: Iterable[dict[str, Any]]) -> set[str]:
        """The nodes among these that have been silent for too long."""
        return {name for name, silence in self.ask(nodes).items() if silence >= LONGEST_SILENCE}


SILENT_NODES = SilentNodes()


def _live_workers(nodes: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (node for node in nodes if node["Alive"] and HEAD not in node["Resources"])


def _answers(node: dict[str, Any]) -> bool:
    try:
        with socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), CONNECT_TIMEOUT):
            return True
    except OSError:
        return False


def places(nodes: Iterable[dict[str, Any]], needs: dict[str, float], without: Collection[str]) -> int:
    """The number of live worker nodes, without those named, that have room for a rank with these resources."""
    return sum(
        1
        for node in _live_workers(nodes)
        if node["NodeID"] not in without
        and all(node["Resources"].get(name, 0.0) >= amount for name, amount in needs.items())
    )
