"""Silent nodes: which ones stopped together, from the node status and the kubelets' Leases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from spotladder.clusters.client import Page
from spotladder.clusters.errors import Forbidden
from spotladder.core.model import AttemptSeen, PodPhase, PodSeen
from spotladder.core.reasons import Cause
from spotladder.operator.inventory.heartbeats import LOOK_INTERVAL, Heartbeats
from spotladder.workloads.records import NodeRecord
from tests.clusters.stepped_clock import SteppedClock
from tests.workloads.builders import pod

START = 1_800_000_000.0
SILENT = PodSeen("w-0", phase=PodPhase.LOST, ready=False, cause=Cause.NODE_LOST, silent=True)


def node(name: str, *, silent_for: float | None = None) -> NodeRecord:
    ready, since = ("True", 0.0) if silent_for is None else ("Unknown", START - silent_for)
    return NodeRecord(name=name, uid=name, ready=ready, ready_since=since)


@dataclass
class Leases:
    """The API server, with the age of each kubelet's Lease."""

    ages: Mapping[str, float]
    refuses: bool = False
    ahead: float = 0.0
    lists: int = 0

    async def pages(self, *_: object) -> AsyncIterator[Page]:
        self.lists += 1
        if self.refuses:
            raise Forbidden(403, "Forbidden", "leases is forbidden")
        times = {name: datetime.fromtimestamp(START - age, UTC).isoformat() for name, age in self.ages.items()}
        yield Page([{"metadata": {"name": name}, "spec": {"renewTime": at}} for name, at in times.items()], "1")


@dataclass
class NodeInventory:
    nodes: list[NodeRecord]
    contact_restored_at: float | None = None


@dataclass
class LeaseCluster:
    client: Leases
    inventory: NodeInventory
    name: str = "home"
    clock: SteppedClock = field(default_factory=lambda: SteppedClock(START))


async def facts(nodes: list[NodeRecord], of_job: list[str], ages: Mapping[str, float], **more: Any) -> AttemptSeen:
    cluster: Any = LeaseCluster(Leases(ages, **more), NodeInventory(nodes))
    heartbeats, seen = Heartbeats(cluster.clock), AttemptSeen(1, (SILENT,))
    assert await heartbeats.refresh(cluster, seen)
    pods = [pod(f"w-{index}", node=name) for index, name in enumerate(of_job)]
    return heartbeats.facts(seen, cluster, pods, {entry.name: entry for entry in nodes if entry.name in of_job})


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
async def test_silent_nodes_of_the_job_are_counted_from_node_status_and_leases(
    nodes: list[NodeRecord], ages: Mapping[str, float], silent: int, of: int
) -> None:
    seen = await facts(nodes, ["a", "b"], ages)
    assert (seen.silent_nodes, seen.nodes) == (silent, of)


async def test_without_permission_to_list_leases_only_the_node_status_counts() -> None:
    seen = await facts([node("a", silent_for=0), node("b")], ["a", "b"], {"a": 50, "b": 43}, refuses=True)
    assert (seen.silent_nodes, seen.nodes) == (1, 2)


async def test_leases_are_listed_only_while_a_node_is_silent_and_at_most_once_per_interval() -> None:
    cluster: Any = LeaseCluster(Leases({}), NodeInventory([]))
    heartbeats, silent = Heartbeats(cluster.clock), AttemptSeen(1, (SILENT,))
    assert not await heartbeats.refresh(cluster, AttemptSeen(1, (PodSeen("w-0"),)))
    assert [await heartbeats.refresh(cluster, silent) for _ in range(3)] == [True, False, False]
    await cluster.clock.advance(LOOK_INTERVAL)
    assert await heartbeats.refresh(cluster, silent)
    assert cluster.client.lists == 2
