"""Silent nodes: which ones stopped together, from the node status and the kubelets' Leases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from spotladder.core.model import AttemptSeen, PodPhase, PodSeen
from spotladder.core.reasons import Cause
from spotladder.operator.inventory.heartbeats import with_silent_nodes
from spotladder.operator.inventory.leases import LONGEST_GAP, LeaseTable
from spotladder.workloads.records import NodeRecord
from tests.workloads.builders import pod

START = 1_800_000_000.0
SILENT = PodSeen("w-0", phase=PodPhase.LOST, ready=False, cause=Cause.NODE_LOST, silent=True)


def node(name: str, *, silent_for: float | None = None) -> NodeRecord:
    ready, since = ("True", 0.0) if silent_for is None else ("Unknown", START - silent_for)
    return NodeRecord(name=name, uid=name, ready=ready, ready_since=since)


@dataclass
class NodeInventory:
    nodes: list[NodeRecord]
    leases: LeaseTable = field(default_factory=LeaseTable)
    contact_restored_at: float | None = None


def facts(nodes: list[NodeRecord], ages: Mapping[str, float], *, listed_ago: float = 0.0) -> AttemptSeen:
    """What is known of a job on the nodes a and b. `ages` are those of the Leases."""
    inventory: Any = NodeInventory(nodes)
    times = {name: datetime.fromtimestamp(START - age, UTC).isoformat() for name, age in ages.items()}
    leases = [{"metadata": {"name": name}, "spec": {"renewTime": at}} for name, at in times.items()]
    inventory.leases.listed(leases, 100.0 - listed_ago, START)
    pods, known = [pod("w-0", node="a"), pod("w-1", node="b")], {entry.name: entry for entry in nodes}
    return with_silent_nodes(AttemptSeen(1, (SILENT,)), inventory, pods, known, now=START, ticks=100.0)


@pytest.mark.parametrize(
    ("nodes", "ages", "silent", "of"),
    [
        pytest.param([node("a", silent_for=0), node("b")], {"a": 50, "b": 43}, 2, 2, id="the other stopped, too"),
        pytest.param([node("a", silent_for=0), node("b")], {"a": 50, "b": 9}, 1, 2, id="the other is alive"),
        pytest.param([node("a", silent_for=0), node("b")], {"a": 11, "b": 9}, 2, 2, id="a short grace, too"),
        pytest.param([node("a", silent_for=0), node("b")], {"a": 11, "b": 2}, 1, 2, id="a short grace, alive"),
        pytest.param([node("a", silent_for=0), node("b")], {}, 1, 2, id="no Leases"),
        pytest.param([node("a", silent_for=0), node("b", silent_for=9)], {}, 2, 2, id="both are marked"),
        pytest.param([node("a", silent_for=0), node("b", silent_for=200)], {}, 1, 1, id="one was lost long ago"),
    ],
)
def test_silent_nodes_of_the_job_are_counted_from_node_status_and_leases(
    nodes: list[NodeRecord], ages: Mapping[str, float], silent: int, of: int
) -> None:
    seen = facts(nodes, ages)
    assert (seen.silent_nodes, seen.nodes) == (silent, of)


def test_without_a_recent_list_of_leases_only_the_node_status_counts() -> None:
    seen = facts([node("a", silent_for=0), node("b")], {"a": 50, "b": 43}, listed_ago=LONGEST_GAP + 1.0)
    assert (seen.silent_nodes, seen.nodes) == (1, 2)
