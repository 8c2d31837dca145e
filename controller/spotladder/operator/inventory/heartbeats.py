"""Counts the nodes of a job, and of its cluster, that have stopped sending heartbeats, so that the core can distinguish
a loss of contact from a lost node.

The node lifecycle controller marks silent nodes one after the other, over several seconds. Their Leases, which
`silence` lists, show at once whether the other nodes of a job have stopped too. A node that renews its Lease while
another one is silent is alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from spotladder.core.model import AttemptSeen, Instant, Seconds
from spotladder.operator.inventory.inventory import Inventory
from spotladder.operator.inventory.leases import SAME_MOMENT
from spotladder.workloads.causes import not_heard_of
from spotladder.workloads.records import NodeRecord, PodRecord


def with_silent_nodes(
    seen: AttemptSeen,
    inventory: Inventory,
    pods: Iterable[PodRecord],
    nodes: Mapping[str, NodeRecord],
    *,
    now: Instant,
    ticks: Seconds,
) -> AttemptSeen:
    """The attempt with the numbers of silent nodes of it and of its cluster; unchanged while no node is silent. `now`
    is by the cluster's clock, `ticks` by the controller's."""
    if not any(pod.silent for pod in seen.pods):
        return seen
    of_job = {pod.node for pod in pods if pod.node and pod.phase == "Running"}

    def since(node: NodeRecord) -> Instant:
        return now if node.ready_since is None else node.ready_since

    newest = max((since(node) for name, node in nodes.items() if name in of_job and not_heard_of(node)), default=now)

    def counts(node: NodeRecord | None) -> bool:
        return node is None or not not_heard_of(node) or newest - since(node) <= SAME_MOMENT

    names = {name for name in of_job if counts(nodes.get(name))}
    marked = {name for name in names if not_heard_of(nodes.get(name))}
    everywhere = [node for node in inventory.nodes if counts(node)]
    return replace(
        seen,
        nodes=len(names),
        silent_nodes=len(marked | (inventory.leases.stopped_like(marked, ticks) & names)),
        cluster_nodes=len(everywhere),
        cluster_silent_nodes=sum(1 for node in everywhere if not_heard_of(node)),
        contact_restored_at=inventory.contact_restored_at,
    )
