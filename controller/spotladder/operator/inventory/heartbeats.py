"""Which nodes have stopped sending heartbeats: facts by which the core tells a loss of contact from a lost node.

The node lifecycle controller marks silent nodes one after the other, over several seconds. Their Leases tell at once
whether the other nodes of a job stopped as well: they are read when the first node of a job is marked, and only then.
A node that renews its Lease while another one is silent is alive.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from spotladder.clusters.clock import Clock
from spotladder.clusters.election import LEASES
from spotladder.core.model import AttemptSeen, Instant, Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.inventory.clusters import Cluster
from spotladder.workloads.causes import not_heard_of
from spotladder.workloads.records import NodeRecord, PodRecord, instant

NODE_LEASES = "kube-node-lease"
"""The namespace of the kubelets' Leases, named after the nodes."""

SAME_MOMENT: Seconds = 60.0
"""Nodes that were marked silent within this time of each other fell silent together. Those that were marked longer ago
are left out of every count: they are lost."""

LOOK_INTERVAL: Seconds = 5.0
"""Minimum interval between two lists of a cluster's Leases."""

LOOK_TTL: Seconds = 15.0
"""How long a list of Leases is used."""


@dataclass(frozen=True, slots=True)
class _LeaseRenewals:
    """The Leases of one cluster: when each was renewed. `at` is by the cluster's clock, `ticks` by our own."""

    at: Instant
    ticks: Seconds
    renewed: Mapping[str, Instant]


class Heartbeats:
    """Lists Leases when a node of a job is silent, and remembers what they said for a few seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._renewals: dict[str, _LeaseRenewals] = {}

    async def refresh(self, cluster: Cluster, seen: AttemptSeen | None) -> bool:
        """List the Leases of the cluster if a pod of the attempt is on a silent node. Returns whether there is news.

        Leases that cannot be read tell nothing: then the nodes' conditions alone decide.
        """
        if seen is None or not any(pod.silent for pod in seen.pods):
            return False
        ticks, before = self._clock.ticks(), self._renewals.get(cluster.name)
        if before is not None and ticks - before.ticks < LOOK_INTERVAL:
            return False
        at, renewed = self._clock.now() + cluster.client.ahead, {}
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
        self, seen: AttemptSeen, cluster: Cluster, pods: Iterable[PodRecord], nodes: Mapping[str, NodeRecord]
    ) -> AttemptSeen:
        """The attempt with how many of its nodes, and of its cluster's, are silent; unchanged while no node is."""
        if not any(pod.silent for pod in seen.pods):
            return seen
        now = self._clock.now() + cluster.client.ahead
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

    def _stopped(self, cluster: Cluster, marked: set[str]) -> set[str]:
        """Nodes that stopped to renew their Leases when the marked ones did.

        A healthy node renewed its Lease within the last quarter of the grace period, one that stopped with the marked
        node did so a quarter of it before or after that. Half way between the two holds for every grace period.
        """
        look = self._renewals.get(cluster.name)
        if look is None or self._clock.ticks() - look.ticks > LOOK_TTL:
            return set()
        stopped_at = min((look.renewed[name] for name in marked if name in look.renewed), default=None)
        if stopped_at is None:
            return set()
        middle = (stopped_at + look.at) / 2
        return {name for name, renewed in look.renewed.items() if renewed < middle}
