"""All clusters that a controller knows: the home cluster and the member clusters. A job's objects may be in any of
them.

1. TieredJobs, CapacityTiers, the Lease and Events are only in the home cluster.
2. A member cluster may serve several home clusters. Objects of a controller have a label with its home cluster, and
   the controller ignores all others.
3. A call that waits for a cluster occupies a worker, so each cluster may occupy only a share of the workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from spotladder.api.capacitytier import HOME
from spotladder.api.stored import JobRecord
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.registry import ConnectionSource
from spotladder.clusters.skew import correction
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.inventory.inventory import OURS, Inventory, JobKey
from spotladder.operator.inventory.monitor import ClusterMonitor
from spotladder.resources import NAMESPACES, APIResource
from spotladder.workloads import names
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects

IDENTITY_RETRY_INTERVAL: Seconds = 30.0
"""Interval after which the identity of the home cluster is read again, if that failed."""

_NOT_YET = "is being connected for the first time"


class Busy(SpotladderError):
    """The maximum number of workers already waits for this cluster: requeue with a short delay."""

    exit_code = 5


@dataclass(slots=True, eq=False)
class WorkloadCluster:
    """One cluster. `home` is "" for the home cluster itself, and the home cluster's identity for member clusters,
    which have a monitor. At most `most` jobs may wait for a member cluster. `reference` is the client by which the
    controller's clock is corrected."""

    name: str
    client: Client
    inventory: Inventory
    most: int
    monitor: ClusterMonitor | None = None
    home: str = ""
    reference: Client | None = None
    _inside: int = 0

    @property
    def problem(self) -> str:
        """Why the cluster cannot be used; "" if it can."""
        return self.monitor.problem if self.monitor else ""

    @property
    def where(self) -> str:
        """The place in a message: " in cluster NAME", or "" for the home cluster."""
        return f" in cluster {self.name}" if self.monitor else ""

    @property
    def selector(self) -> str:
        """The labels of this controller's objects in the cluster."""
        return selector(self.home)

    @property
    def ahead(self) -> Seconds:
        """The difference by which the cluster's clock is ahead of the controller's."""
        return self.client.ahead - (correction(self.reference.ahead) if self.reference else 0.0)

    @property
    def skew(self) -> str:
        """The difference between the clocks of the cluster and of the controller if it is significant; rounded,
        because the status includes it."""
        minutes = round(self.ahead / 60)
        direction = "ahead of" if minutes > 0 else "behind"
        return f"{abs(minutes)} minutes {direction} the controller's" if minutes else ""

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The context of a call to the cluster. Raises Busy."""
        if self.monitor and self._inside >= self.most:
            raise Busy(f"cluster {self.name}: {self._inside} jobs wait for it")
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def unreadable(self, kinds: Iterable[APIResource], namespace: str) -> str:
        """Why the observation of an attempt in the cluster may be incomplete; "" if it is complete. A kind that is not
        installed has no objects."""
        for cache in self.inventory.unreadable(kinds, namespace):
            if not cache.absent:
                return f"{cache.kind.plural} cannot be read: {cache.problem}"
        return ""


@dataclass(frozen=True, slots=True)
class Located:
    """The objects of an attempt, and their cluster."""

    cluster: WorkloadCluster
    objects: AttemptObjects


@dataclass(frozen=True, slots=True)
class JobObjects:
    """The objects of a job: each attempt in the one cluster to which it belongs, and copies of it in other clusters.
    The same objects in a cluster with another name are no copies."""

    attempts: Mapping[int, Located]
    strays: tuple[tuple[int, Located], ...]


class Clusters:
    """`run` keeps the connections until it is cancelled. It calls `wake` with the job to reconcile and `changed` with
    the cluster that became unavailable or available."""

    def __init__(
        self,
        home: WorkloadCluster,
        sources: Mapping[str, ConnectionSource],
        *,
        join: Callable[[str, ConnectionSource, str], WorkloadCluster],
        clock: Clock,
        changed: Callable[[str], None],
    ) -> None:
        self.home = home
        self.names = frozenset({HOME, *sources})
        self._sources = sources
        self._join = join
        self._clock = clock
        self._changed = changed
        self._identity_error = ""
        self._joined: dict[str, WorkloadCluster] = {}
        self._log = structlog.get_logger("spotladder")

    # --- maintenance ------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read the identity of the home cluster, then connect to all clusters."""
        if not self._sources:
            return
        home = await self._identity()
        self._joined = {name: self._join(name, source, home) for name, source in self._sources.items()}
        monitors = [cluster.monitor for cluster in self._joined.values() if cluster.monitor]
        # A TaskGroup would not pass on a second cancellation, which ends a monitor that has hidden the first.
        await asyncio.gather(*(monitor.run() for monitor in monitors))

    async def _identity(self) -> str:
        """The home cluster's identity: the uid of a namespace that exists as long as the cluster."""
        while True:
            try:
                return str((await self.home.client.get(NAMESPACES, "kube-system"))["metadata"]["uid"])
            except SpotladderError as error:
                if self._identity_error != str(error):
                    self._identity_error = str(error)
                    self._log.warning(
                        "the home cluster cannot be identified; member clusters are not used",
                        error=self._identity_error,
                    )
                    for name in self._sources:
                        self._changed(name)
            await self._clock.sleep(IDENTITY_RETRY_INTERVAL)

    # --- queries ----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[WorkloadCluster]:
        """The clusters that are known so far."""
        yield self.home
        yield from self._joined.values()

    @property
    def others(self) -> list[WorkloadCluster]:
        """The member clusters that can be used now."""
        return [cluster for cluster in self._joined.values() if not cluster.problem]

    @property
    def suspects(self) -> frozenset[str]:
        """The nodes of all clusters that are silent although their status does not say so yet, by name."""
        return frozenset[str]().union(*(cluster.inventory.suspects for cluster in self))

    def of(self, name: str) -> WorkloadCluster | None:
        """The cluster with this name, if it is known already."""
        return self.home if name == HOME else self._joined.get(name)

    def has_synced(self, name: str) -> bool:
        """Whether it is known if the cluster can be used."""
        cluster = self._joined.get(name)
        if cluster is not None and cluster.monitor is not None:
            return cluster.monitor.known
        return name not in self._sources or bool(self._identity_error)

    def problem(self, name: str, kinds: Iterable[APIResource] = (), namespace: str = "") -> str:
        """Why attempts of these kinds cannot be managed in the cluster; "" if they can."""
        cluster = self.of(name)
        if cluster is None:
            return self._identity_error or _NOT_YET
        return cluster.problem or (cluster.unreadable(kinds, namespace) if cluster.monitor else "")

    def doubt(self, name: str) -> str:
        """The problem of a cluster that is still usable; "" if it has none."""
        cluster = self.of(name)
        return cluster.monitor.doubt if cluster is not None and cluster.monitor and not cluster.problem else ""

    def attempts(self, record: JobRecord, where: Callable[[AttemptObjects], str | None]) -> JobObjects:
        """The objects of the job in all clusters. `where` returns the cluster to which an attempt belongs, if known.

        In the home cluster, remaining objects of a deleted job with the same name count as the job's, so that no name
        is used twice.
        """
        places: dict[int, list[Located]] = {}
        for cluster in self:
            uid = record.uid if cluster.monitor else ""
            for number, objects in cluster.inventory.attempts(record.key, uid).items():
                places.setdefault(number, []).append(Located(cluster, objects))
        attempts, strays = {}, []
        for number, found in places.items():
            right = next((entry for entry in found if entry.cluster.name == where(entry.objects)), found[0])
            attempts[number] = right
            strays += [(number, entry) for entry in found if _is_copy(entry.objects, right.objects)]
        return JobObjects(attempts, tuple(strays))

    def pods_of(self, key: JobKey) -> list[PodRecord]:
        """The pods of the job in all clusters."""
        return [pod for cluster in self for pod in cluster.inventory.pods_of(key)]

    def abandoned(self, key: JobKey, uid: str) -> list[tuple[int, Located]]:
        """The objects with a job's name in usable member clusters that do not belong to the job with this uid."""
        return [
            (number, Located(cluster, objects))
            for cluster in self.others
            for number, objects in cluster.inventory.of_others(key, uid).items()
        ]


def _is_copy(objects: AttemptObjects, of: AttemptObjects) -> bool:
    """Whether both have a main object, which is not the same one."""
    return objects.top is not None and of.top is not None and objects.top.uid != of.top.uid


def selector(home: str) -> str:
    """The labels of a controller's objects, in its home cluster ("") or in another."""
    return f"{OURS},{names.HOME}={home}" if home else OURS
