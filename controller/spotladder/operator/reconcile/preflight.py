"""Checks that the objects to which an attempt's pods refer exist in their cluster. A pod without one of them stays
pending and looks like a pod that waits for a node.

1. Right before an attempt is created, in the cluster of its tier: a missing object holds the attempt back and exhausts
   no tier.
2. Long before, for all tiers in the background: the condition `Preflight` reports what the job would lack on a tier,
   early enough to fix it.
3. Versions that do not work together are reported in the same condition, and hold no attempt back.

Only metadata is requested, so the content of Secrets is not sent. Objects that the controller must not read count as
existing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import Forbidden, NotFound
from spotladder.clusters.shared_reads import SharedReads
from spotladder.core.model import Seconds
from spotladder.errors import InvalidSpec, SpotladderError
from spotladder.installed import InstalledVersions, installed
from spotladder.operator.inventory.clusters import Clusters, WorkloadCluster
from spotladder.operator.inventory.inventory import JobKey
from spotladder.resources import NAMESPACES
from spotladder.workloads import names
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.kueue import LOCAL_QUEUES
from spotladder.workloads.pod_security import LABEL
from spotladder.workloads.references import Reference, references
from spotladder.workloads.tenancy import Level
from spotladder.workloads.tiers import PlacedTier

FOUND_TTL: Seconds = 60.0
"""Time after which an object that was found is checked again."""

MISSING_RETRY_INTERVAL: Seconds = 30.0
"""Interval between two checks for objects that a later tier lacks; `LATER` if none is missing."""

LATER: Seconds = 600.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """The objects that pods in one cluster need. `ray` is the Ray version of the attempts,
    None if it is unknown or they have no Ray."""

    cluster: str
    references: tuple[Reference, ...]
    ray: str | None = None


@dataclass(frozen=True, slots=True)
class Ahead:
    """The problems of a job on tiers that it may use, each "" if there is none: missing objects, and incompatible
    versions in its clusters."""

    missing: str = ""
    conflicts: str = ""


@dataclass(slots=True)
class _Check:
    """The last check of a job's needs, at `at`. `found` is None before it is done, or while a cluster does not
    answer."""

    version: object
    wanted: tuple[Wanted, ...]
    at: Seconds = -math.inf
    found: Ahead | None = None
    task: asyncio.Task[None] | None = None


class Preflight:
    """Use as `async with`: the exit ends background checks. Calls `changed` with the job whose result is new."""

    def __init__(self, clusters: Clusters, *, clock: Clock, changed: Callable[[JobKey], None]) -> None:
        self._clusters = clusters
        self._clock = clock
        self._changed = changed
        self._existing = SharedReads[tuple[str, str, Reference], bool | None](
            clock, lambda exists: 0.0 if exists is False else FOUND_TTL
        )
        self._levels = SharedReads[tuple[str, str], str | None](clock, lambda _label: FOUND_TTL)
        self._checks: dict[JobKey, _Check] = {}
        self._installed = SharedReads[str, InstalledVersions](clock, lambda _versions: LATER)

    async def __aenter__(self) -> Preflight:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [look.task for look in self._checks.values() if look.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._existing.aclose()
        await self._levels.aclose()
        await self._installed.aclose()

    async def missing(
        self, cluster: WorkloadCluster, namespace: str, references: Iterable[Reference]
    ) -> tuple[Reference, ...]:
        """The references that do not exist in that cluster and namespace. Raises ClusterUnreachable, Throttled."""
        wanted = tuple(references)
        existing = await asyncio.gather(*(self.exists(cluster, namespace, entry) for entry in wanted))
        lacks = [entry for entry, exists in zip(wanted, existing, strict=True) if exists is False]
        return tuple([await _with_kind(cluster, entry) for entry in lacks])

    async def exists(self, cluster: WorkloadCluster, namespace: str, reference: Reference) -> bool | None:
        """Whether the object exists; None if the controller must not read it. Raises ClusterUnreachable, Throttled."""
        key = cluster.name, namespace, reference
        return await self._existing.get(key, lambda: _exists(cluster, namespace, reference))

    async def level(self, cluster: WorkloadCluster, namespace: str) -> Level:
        """The Pod Security level of the namespace there. Raises ClusterUnreachable, Throttled."""
        label = await self._levels.get((cluster.name, namespace), lambda: _label(cluster, namespace))
        return Level(label, f"namespace {namespace}{cluster.where}")

    def check(self, job: JobKey, version: object, wanted: Callable[[], tuple[Wanted, ...]]) -> Ahead | None:
        """The objects that the job lacks on its tiers; None while the check is pending.

        Calls `wanted` once for each version of the job and its tiers.
        """
        known, now = self._checks.get(job), self._clock.ticks()
        if known is None or known.version != version:
            self.forget(job)
            known = self._checks[job] = _Check(version, wanted())
        complete = known.found is not None and not known.found.missing
        due = now - known.at >= (LATER if complete else MISSING_RETRY_INTERVAL)
        if due and (known.task is None or known.task.done()):
            known.at = now
            known.task = asyncio.create_task(self._find(job, known))
        return known.found

    def reconnected(self, cluster: str) -> None:
        """Read the versions of the cluster again, which may have changed, and check the jobs that may use it."""
        self._installed.forget(cluster)
        for known in self._checks.values():
            if cluster in (wanted.cluster for wanted in known.wanted):
                known.at = -math.inf

    def forget(self, job: JobKey) -> None:
        """Forget a job that is gone or over."""
        known = self._checks.pop(job, None)
        if known is not None and known.task is not None:
            known.task.cancel()

    async def _find(self, job: JobKey, look: _Check) -> None:
        parts, conflicts, unknown = [], [], False
        for wanted in look.wanted:
            cluster = self._clusters.of(wanted.cluster)
            if cluster is None or cluster.problem:
                continue  # The condition Degraded reports the cluster.
            try:
                if cluster.monitor and await self.missing(cluster, "", [Reference(NAMESPACES, job[0])]):
                    parts.append(lacking_namespace(cluster, job[0]))
                    continue
                missing = await self.missing(cluster, job[0], wanted.references)
            except SpotladderError:
                unknown = True
                continue
            if missing:
                parts.append(lacking(cluster, job[0], missing))
            with suppress(SpotladderError):
                versions = await self._installed.get(wanted.cluster, partial(installed, cluster.client))
                conflicts += [f"{_place(cluster)}{conflict}" for conflict in versions.conflicts(wanted.ray)]
        if unknown and not parts:
            return
        before, look.found = look.found, Ahead("; ".join(parts), "; ".join(conflicts))
        if before != look.found:
            self._changed(job)


def _place(cluster: WorkloadCluster) -> str:
    return f"cluster {cluster.name}: " if cluster.monitor else ""


def lacking(cluster: WorkloadCluster, namespace: str, missing: Iterable[Reference]) -> str:
    """The message: the missing objects, their place and the remedy."""
    where = f"cluster {cluster.name}, namespace {namespace}" if cluster.monitor else f"namespace {namespace}"
    entries = tuple(missing)
    absent = [entry for entry in entries if not entry.installed]
    what = "install Kueue, or remove the queue" if absent and len(absent) == len(entries) else "create it there"
    return f"{where} lacks {', '.join(map(str, entries))}: {what}"


def lacking_namespace(cluster: WorkloadCluster, namespace: str) -> str:
    """The message for a missing namespace in a cluster."""
    return f"namespace {namespace} does not exist{cluster.where}: create it"


def needs(job: TieredJob, tiers: Iterable[PlacedTier]) -> tuple[Wanted, ...]:
    """The objects to which the job's pods refer in the cluster of each tier."""
    workload = workload_of(job)
    found: dict[str, dict[Reference, None]] = {}
    rays: dict[str, str | None] = {}
    for tier in tiers:
        try:
            objects = workload.render(job, names.Origin(""), tier, 1, {})
        except InvalidSpec:
            continue  # The condition Valid reports this.
        rays[tier.cluster] = workload.ray_version(objects)
        found.setdefault(tier.cluster, {}).update(dict.fromkeys(references(objects, tier.queue)))
    return tuple(Wanted(cluster, tuple(entries), rays.get(cluster)) for cluster, entries in sorted(found.items()))


async def _with_kind(cluster: WorkloadCluster, reference: Reference) -> Reference:
    """A missing queue, with whether the cluster knows queues."""
    if reference.kind != LOCAL_QUEUES:
        return reference
    return replace(reference, installed=await cluster.client.exists(LOCAL_QUEUES))


async def _exists(cluster: WorkloadCluster, namespace: str, reference: Reference) -> bool | None:
    try:
        await cluster.client.metadata(reference.kind, reference.name, namespace if reference.kind.namespaced else "")
    except NotFound:
        return False
    except Forbidden:  # A kind that is not installed has no objects.
        return False if reference.kind == LOCAL_QUEUES and not await cluster.client.exists(LOCAL_QUEUES) else None
    return True


async def _label(cluster: WorkloadCluster, namespace: str) -> str | None:
    """The value of the namespace's label. Without access to the namespace it is unknown, as if there were none."""
    try:
        metadata = (await cluster.client.metadata(NAMESPACES, namespace))["metadata"]
    except (Forbidden, NotFound):
        return None
    label: str | None = (metadata.get("labels") or {}).get(LABEL)
    return label
