"""Detects which nodes have stopped sending heartbeats, so that the core can distinguish a loss of contact from a lost
node.

The node lifecycle controller marks silent nodes one after the other, over several seconds. Their Leases show at once
whether the other nodes of a job have stopped too. The Leases are read only when the first node of a job is marked. A
node that renews its Lease while another one is silent is alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spotladder.clusters.clock import Clock
from spotladder.clusters.election import LEASES
from spotladder.core.model import AttemptSeen, Instant, Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.inventory.clusters import WorkloadCluster
from spotladder.timestamps import instant
from spotladder.workloads.causes import not_heard_of
from spotladder.workloads.records import NodeRecord, PodRecord

NODE_LEASES = "kube-node-lease"
"""The namespace of the kubelets' Leases, named after the nodes."""

SAME_MOMENT: Seconds = 60.0
"""Nodes that were marked silent within this time of each other fell silent together. Nodes that were marked earlier
are not counted: they are lost."""

LOOK_INTERVAL: Seconds = 5.0
"""Minimum interval between two lists of a cluster's Leases."""

LOOK_TTL: Seconds = 15.0
"""How long a list of Leases is valid."""


@dataclass(frozen=True, slots=True)
class _LeaseRenewals:
    """The Leases of one cluster: when each was renewed. `at` is by the cluster's clock, `ticks` by the controller's."""

    at: Instant
    ticks: Seconds
    renewed: Mapping[str, Instant]


class Heartbeats:
    """Lists Leases when a node of a job is silent, and keeps the result for a few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._renewals: dict[str, _LeaseRenewals] = {}

    async def refresh(self, cluster: WorkloadCluster, seen: AttemptSeen | None) -> bool:
        """List the Leases of the cluster if a pod of the attempt is on a silent node. Returns whether the result is
        new.

        If the Leases cannot be read, only the nodes' conditions are used.
        """
        if seen is None or not any(pod.silent for pod in seen.pods):
            return False
        ticks, before = self._clock.ticks(), self._renewals.get(cluster.name)
        if before is not None and ticks - before.ticks < LOOK_INTERVAL:
            return False
        at, renewed = self._clock.now() + cluster.ahead, {}
        try:
            async for page in cluster.client.pages(LEASES, NODE_LEASES):
                for lease in page.items:
                    if (time := instant((lease.get("spec") or {}).get("renewTime"))) is not None:
                        renewed[lease["metadata"]["name"]] = time
        except SpotladderError:
            renewed = {}
        self._renewals[cluster.name] = _LeaseRenewals(at, ticks, renewed)
        return True

    def facts(
        self, seen: AttemptSeen, cluster: WorkloadCluster, pods: Iterable[PodRecord], nodes: Mapping[str, NodeRecord]
    ) -> AttemptSeen:
        """Add the numbers of silent nodes of the attempt and of its cluster; unchanged while no node is silent."""
        if not any(pod.silent for pod in seen.pods):
            return seen
        now = self._clock.now() + cluster.ahead
        of_job = {pod.node for pod in pods if pod.node and pod.phase == "Running"}

        def since(node: NodeRecord) -> Instant:
            return now if node.ready_since is None else node.ready_since

        newest = max(
            (since(node) for name, node in nodes.items() if name in of_job and not_heard_of(node)), default=now
        )

        def counts(node: NodeRecord | None) -> bool:
            return node is None or not not_heard_of(node) or newest - since(node) <= SAME_MOMENT

        names = {name for name in of_job if counts(nodes.get(name))}
        marked = {name for name in names if not_heard_of(nodes.get(name))}
        everywhere = [node for node in cluster.inventory.nodes if counts(node)]
        return replace(
            seen,
            nodes=len(names),
            silent_nodes=len(marked | (self._stopped(cluster, marked) & names)),
            cluster_nodes=len(everywhere),
            cluster_silent_nodes=sum(1 for node in everywhere if not_heard_of(node)),
            contact_restored_at=cluster.inventory.contact_restored_at,
        )

    def _stopped(self, cluster: WorkloadCluster, marked: set[str]) -> set[str]:
        """Nodes that stopped renewing their Leases when the marked ones did.

        A healthy node has renewed its Lease within the last quarter of the grace period. A node that stopped with the
        marked node did so within a quarter of it before or after. The threshold halfway between works for every grace
        period.
        """
        look = self._renewals.get(cluster.name)
        if look is None or self._clock.ticks() - look.ticks > LOOK_TTL:
            return set()
        stopped_at = min((look.renewed[name] for name in marked if name in look.renewed), default=None)
        if stopped_at is None:
            return set()
        middle = (stopped_at + look.at) / 2
        return {name for name, renewed in look.renewed.items() if renewed < middle}
