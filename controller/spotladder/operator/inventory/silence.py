"""Detects silent nodes sooner than Kubernetes, which marks them after its node-monitor-grace-period (50 s by default).

1. A kubelet renews its Lease every quarter of the Lease's duration, 10 s by default. The controller lists the Leases
   while pods of attempts have nodes.
2. A Lease is late when it was not renewed for more than two of these intervals. Only Leases count that the controller
   has seen renewed, by its own clock, and only while other Leases are renewed: otherwise the API server is the cause.
3. A late Lease is evidence, not proof. The controller then asks the node's kubelet, through the API server, for the
   last line of a container's log. The node is suspected if the kubelet does not answer either. The controller sends the
   request early enough that the Lease is late when the request times out, and lists the Leases once more afterwards.
4. When the other nodes of a job, or many nodes of the cluster, have stopped at the same time, the cause may be a loss
   of contact: then no node is suspected, and `core.evidence` decides when Kubernetes marks the nodes.
5. The program of a job reports through the checkpoint store that it lives. While the Lease of a node is overdue, the
   controller reads the heartbeats of its jobs often. If they have stopped, too, one missing renewal is enough, and
   nodes that stopped at the same time are no loss of contact. All of them are then suspected at once.
6. A suspicion ends when the Lease is renewed.

Without the permission to read logs nothing is verified, and no node is suspected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from spotladder.clusters.clock import Clock
from spotladder.clusters.election import LEASES
from spotladder.clusters.errors import ClusterUnreachable, Forbidden, NotFound
from spotladder.core.diagnosis.evidence import MANY_NODES, MAX_OF_A_CLUSTER
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError, TooLarge
from spotladder.operator.inventory.clusters import WorkloadCluster
from spotladder.operator.inventory.inventory import Inventory, JobKey
from spotladder.workloads.records import Object, PodRecord

NODE_LEASES = "kube-node-lease"
"""The namespace of the kubelets' Leases, named after the nodes."""

POLL_INTERVAL: Seconds = 5.0
"""Interval between two lists of a cluster's Leases."""

MAX_PAGES = 4
"""Maximum number of pages of such a list. In larger clusters only Kubernetes' own status applies."""

ANSWER_TIMEOUT: Seconds = 5.0
"""Time that a kubelet has to answer, and the API server to list the Leases."""

STOPS_MEANWHILE: Seconds = 2.5
"""Time before the heartbeats of a program count as stopped at which its kubelets are asked. It is shorter than
`ANSWER_TIMEOUT` by the interval between two reads of the heartbeat."""

REFUSED_RETRY_INTERVAL: Seconds = 300.0
"""Interval between two tries in a cluster whose Leases may not be listed or exceed the limit."""

_log = structlog.get_logger("spotladder")


class Programs(Protocol):
    """The heartbeats of the jobs' programs in the checkpoint store."""

    def doubt(self, jobs: Collection[JobKey]) -> None:
        """Read the heartbeats of these jobs often, and those of no others."""

    def has_stopped(self, job: JobKey, *, ahead: Seconds = 0.0) -> bool:
        """Whether the heartbeats of this job have stopped, or will have in `ahead` seconds."""


@dataclass(slots=True)
class _WatchedCluster:
    """The suspected nodes of one cluster, and the jobs of which a node's Lease is overdue. `due` is when its Leases are
    listed next, in ticks."""

    suspects: frozenset[str] = frozenset()
    doubted: frozenset[JobKey] = frozenset()
    due: Seconds = 0.0


@dataclass(slots=True)
class SilenceWatch:
    """`run` sets the suspected nodes of the inventories until it is cancelled. Calls `suspected` with the name of its
    cluster for each."""

    clusters: Iterable[WorkloadCluster]
    programs: Programs
    clock: Clock
    suspected: Callable[[str], None]
    _watched: dict[str, _WatchedCluster] = field(default_factory=dict)

    async def run(self) -> None:
        """List the Leases of all clusters in which pods of attempts run, at intervals."""
        while True:
            await self.clock.sleep(POLL_INTERVAL)
            await asyncio.gather(*(self._look(cluster) for cluster in self.clusters))

    async def _look(self, cluster: WorkloadCluster) -> None:
        ticks = self.clock.ticks()
        watched = self._watched.setdefault(cluster.name, _WatchedCluster())
        if ticks < watched.due or cluster.problem or not (cluster.inventory.occupied or watched.suspects):
            return self._doubt(watched, frozenset())
        watched.due = ticks + POLL_INTERVAL
        if not await self._listed(cluster, watched):
            return self._doubt(watched, frozenset())
        occupied, overdue = cluster.inventory.occupied, cluster.inventory.leases.overdue(self.clock.ticks())
        self._doubt(watched, frozenset(job for name in overdue for job in occupied.get(name, {}).values()))
        until = self.clock.ticks() + ANSWER_TIMEOUT
        silent = await self._unanswered(cluster, watched, until)
        if silent:
            await self.clock.sleep(max(0.0, until - self.clock.ticks()))
            if not await self._listed(cluster, watched):
                return None
        ticks = self.clock.ticks()
        late, overdue = cluster.inventory.leases.late(ticks), cluster.inventory.leases.overdue(ticks)
        alone = frozenset(self._alone(cluster, silent & late, ticks))
        stopped = frozenset(self._stopped(cluster, watched, silent & overdue, ticks))
        return self._suspect(cluster, watched, watched.suspects & overdue | alone | stopped)

    def _doubt(self, watched: _WatchedCluster, jobs: frozenset[JobKey]) -> None:
        if watched.doubted != jobs:
            watched.doubted = jobs
            self.programs.doubt(frozenset().union(*(each.doubted for each in self._watched.values())))

    async def _listed(self, cluster: WorkloadCluster, watched: _WatchedCluster) -> bool:
        """List the cluster's Leases. False if that is not possible now. No node is suspected if they may not be
        listed."""
        try:
            found = await _leases(cluster)
        except (Forbidden, NotFound, TooLarge) as error:
            _log.info("Leases of nodes cannot be listed", cluster=cluster.name, error=str(error))
            found = None
        except (SpotladderError, TimeoutError):
            return False
        if found is None:
            watched.due = self.clock.ticks() + REFUSED_RETRY_INTERVAL
            self._suspect(cluster, watched, frozenset())
            return False
        cluster.inventory.leases.listed(found, self.clock.ticks(), self.clock.now() + cluster.ahead)
        return True

    async def _unanswered(self, cluster: WorkloadCluster, watched: _WatchedCluster, until: Seconds) -> frozenset[str]:
        """The nodes that are not suspected yet, that may be suspected at `until`, and whose kubelet does not answer."""
        late, overdue = (
            found - watched.suspects
            for found in (cluster.inventory.leases.late(until), cluster.inventory.leases.overdue(until))
        )
        stopped = self._stopped(cluster, watched, overdue, until, ahead=STOPS_MEANWHILE)
        asked = sorted({*self._alone(cluster, late, until), *stopped})
        answers = await asyncio.gather(*(_answers(cluster, name) for name in asked))
        return frozenset(name for name, answers_us in zip(asked, answers, strict=True) if not answers_us)

    @staticmethod
    def _alone(cluster: WorkloadCluster, late: frozenset[str], ticks: Seconds) -> Iterator[str]:
        """The nodes with pods of attempts that, seen at `ticks`, did not stop together with others."""
        occupied = cluster.inventory.occupied
        for node in (name for name in late if name in occupied):
            stopped, of = cluster.inventory.leases.stopped_with(node, ticks)
            if len(stopped) >= max(MANY_NODES, MAX_OF_A_CLUSTER * of):
                continue
            of_job = [
                {name for name, jobs in occupied.items() if job in jobs.values()}
                for job in set(occupied[node].values())
            ]
            if not any(len(nodes) > 1 and nodes <= stopped for nodes in of_job):
                yield node

    def _stopped(
        self,
        cluster: WorkloadCluster,
        watched: _WatchedCluster,
        overdue: frozenset[str],
        ticks: Seconds,
        *,
        ahead: Seconds = 0.0,
    ) -> Iterator[str]:
        """The nodes with pods of attempts whose programs have all stopped their heartbeats. All nodes of a job that
        stopped together are suspected together."""
        occupied, silent = cluster.inventory.occupied, overdue | watched.suspects
        for node in (name for name in overdue if name in occupied):
            jobs = set(occupied[node].values())
            if not all(self.programs.has_stopped(job, ahead=ahead) for job in jobs):
                continue
            together, _ = cluster.inventory.leases.stopped_with(node, ticks)
            of_jobs = {name for name, pods in occupied.items() if not jobs.isdisjoint(pods.values())}
            if together & of_jobs <= silent:
                yield node

    def _suspect(self, cluster: WorkloadCluster, watched: _WatchedCluster, nodes: frozenset[str]) -> None:
        for name in sorted(nodes - watched.suspects):
            _log.warning("a node is silent: its Lease is late and its kubelet does not answer", node=name)
            self.suspected(cluster.name)
        for name in sorted(watched.suspects - nodes):
            _log.info("the node is no longer suspected", node=name)
        watched.suspects = nodes
        cluster.inventory.suspect(nodes)


async def _leases(cluster: WorkloadCluster) -> list[Object] | None:
    """The Leases of the cluster's kubelets; None if there are too many."""
    found = list[Object]()
    async with asyncio.timeout(ANSWER_TIMEOUT):
        pages = 0
        async for page in cluster.client.pages(LEASES, NODE_LEASES):
            pages += 1
            if pages > MAX_PAGES:
                return None
            found += page.items
    return found


async def _answers(cluster: WorkloadCluster, node: str) -> bool:
    """Whether the kubelet of this node answers; True if it cannot be queried."""
    pod = next(_running_on(cluster.inventory, node), None)
    if pod is None:
        return True
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            async for _ in cluster.client.log(pod.name, pod.namespace, container=pod.program, tail=1):
                break
    except (ClusterUnreachable, TimeoutError):
        return False
    except SpotladderError:
        return True  # The kubelet has answered, or the API server refuses to ask it.
    return True


def _running_on(inventory: Inventory, node: str) -> Iterator[PodRecord]:
    """The pods on this node whose program has started."""
    for pod in inventory.pods:
        if pod.node == node and pod.program_runs:
            yield pod
