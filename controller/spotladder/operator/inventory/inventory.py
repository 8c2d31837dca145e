"""The relevant objects of one cluster, and the mapping from each change to the jobs that it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from spotladder.clusters.cache import Cache, Scoped
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.core.model import Attempt, Instant
from spotladder.operator.inventory.failed_pods import FailedPods
from spotladder.operator.inventory.guards import Guards
from spotladder.operator.inventory.leases import LeaseTable
from spotladder.resources import EVENTS, NODES, PODS, APIResource
from spotladder.workloads import pending_pods
from spotladder.workloads.kinds import main_kinds, records
from spotladder.workloads.kueue import WORKLOADS, AdmissionRecord
from spotladder.workloads.names import MANAGED_BY, MANAGER
from spotladder.workloads.pending_pods import EVENT_SELECTORS, nominated_for
from spotladder.workloads.records import EventRecord, Made, NodeRecord, PodRecord, job_of
from spotladder.workloads.workload import AttemptObjects

T = TypeVar("T")

JobKey = tuple[str, str]
"""A TieredJob's namespace and name."""

OURS = f"{MANAGED_BY}={MANAGER}"

OF_THE_CLUSTER = "default"
"""The namespace of the Events about objects without a namespace: nodes and NodeClaims."""


class Inventory:
    """The caches of one cluster. Empty `namespaces` means all. The caches call `wake` with the job to reconcile.

    `labels` select the controller's objects: in a cluster that several home clusters share, those of this home
    cluster. `suspects` are the nodes that are silent although their status does not say so yet, `leases` those of the
    kubelets.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        namespaces: Iterable[str] = (),
        labels: str = OURS,
        wake: Callable[[JobKey], None],
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._jobs_on: dict[str, dict[str, JobKey]] = {}
        self._nominations: dict[str, dict[str, EventRecord]] = {}
        self._failed = FailedPods()
        self.suspects: frozenset[str] = frozenset()
        self.leases = LeaseTable()
        scopes = tuple(namespaces) or ("",)

        def scoped(kind: APIResource, trim: Callable[[Any], Any], **more: Any) -> Scoped[Any]:
            return Scoped(
                Cache(client, kind, trim, clock=clock, namespace=scope, **more)
                for scope in (scopes if kind.namespaced else ("",))
            )

        ours: dict[str, Any] = {"labels": labels, "group": job_of}
        self._nodes: Scoped[NodeRecord] = scoped(NODES, NodeRecord.of, changed=self._node_changed)
        self._pods: Scoped[PodRecord] = scoped(PODS, PodRecord.of, changed=self._pod_changed, **ours)
        self._objects: dict[APIResource, Scoped[Any]] = {
            kind: scoped(kind, record, changed=self._object_changed, **ours) for kind, record in records().items()
        }
        self._admissions: Scoped[AdmissionRecord] = scoped(
            WORKLOADS, AdmissionRecord.of, group=_owner_of, changed=self._admission_changed, optional=True
        )
        self.guards = Guards(
            client, clock=clock, scopes=scopes, labels=labels, wake=wake, token_gone=self._wake_jobs_of
        )
        self._main = frozenset(main_kinds())
        self._tops = {kind: scoped for kind, scoped in self._objects.items() if kind in self._main}
        self._events: list[Cache[EventRecord]] = [
            Cache(
                client,
                EVENTS,
                EventRecord.of,
                clock=clock,
                namespace=scope,
                fields=selector,
                group=_about,
                changed=self._event_changed,
            )
            for selector in EVENT_SELECTORS
            for scope in (scopes if scopes == ("",) else dict.fromkeys((*scopes, OF_THE_CLUSTER)))
        ]

    @property
    def caches(self) -> list[Cache[Any]]:
        """All caches, to be run."""
        objects = [cache for scoped in self._objects.values() for cache in scoped.caches]
        rest = [*objects, *self._admissions.caches, *self._events, *self.guards.caches]
        return [*self._nodes.caches, *self._pods.caches, *rest]

    @property
    def required(self) -> list[Cache[Any]]:
        """The caches that every reconcile needs."""
        return [*self._nodes.caches, *self._pods.caches]

    # --- queries ----------------------------------------------------------------------------------------------------

    def nodes_of(self, objects: AttemptObjects) -> dict[str, NodeRecord]:
        """The nodes of the attempt's pods by name, without those that are gone.

        A pod may be observed before its new node. Such a node counts as healthy until the nodes' cache is as new as
        the pod; otherwise a lagging watch would look like an eviction.
        """
        (cache,) = self._nodes.caches
        found = {}
        for pod in objects.pods:
            node = cache.get(pod.node)
            if node is not None:
                found[pod.node] = replace(node, suspect=True) if pod.node in self.suspects else node
            elif pod.node and not cache.is_gone(pod.node, "", at=pod.resource_version):
                found[pod.node] = NodeRecord(name=pod.node, uid="", ready="True")
        return found

    @property
    def nodes(self) -> Iterable[NodeRecord]:
        """All nodes of the cluster."""
        return self._nodes.all()

    @property
    def occupied(self) -> Mapping[str, Mapping[str, JobKey]]:
        """The nodes with pods of attempts, and the job of each of these pods by the pod's uid."""
        return MappingProxyType(self._jobs_on)

    def suspect(self, nodes: frozenset[str]) -> None:
        """Set the nodes that count as silent although their status does not say so."""
        changed, self.suspects = self.suspects ^ nodes, nodes
        for name in changed:
            self._wake_jobs_on(name)

    @property
    def contact_restored_at(self) -> Instant | None:
        """When the watch of the nodes was last restored after an interruption; None if it was never interrupted."""
        (cache,) = self._nodes.caches
        ticks = cache.restored_at
        return None if ticks is None else self._clock.now() - (self._clock.ticks() - ticks)

    @property
    def pods(self) -> Iterable[PodRecord]:
        """All pods of attempts."""
        return self._pods.all()

    def pods_of(self, job: JobKey) -> list[PodRecord]:
        """The pods of all attempts of the job."""
        return self._pods.of(job)

    def with_failed(self, objects: AttemptObjects, attempt: Attempt) -> AttemptObjects:
        """The objects of this attempt with its pods that failed and were deleted at once, without those that are
        counted."""
        top = objects.every[0]
        known = {*attempt.known.lost, *(pod.uid for pod in objects.pods)}
        failed = tuple(
            pod
            for pod in self._failed.of(top.namespace, top.job, self._clock.ticks())
            if (pod.job_uid, pod.attempt) == (top.job_uid, attempt.number) and pod.uid not in known
        )
        return replace(objects, pods=(*objects.pods, *failed)) if failed else objects

    def events_of(self, objects: AttemptObjects, nodes: Mapping[str, NodeRecord]) -> list[EventRecord]:
        """Events about the attempt's pods and their nodes, and those about other objects that may concern it.

        Some refer to a node by its uid, others by its name in the uid field.
        """
        about: set[object] = {
            *((thing.namespace, pending_pods.NOT_CREATED) for thing in objects.every),
            *((pod.namespace, pod.uid) for pod in objects.pods),
            *((OF_THE_CLUSTER, pod.node) for pod in objects.pods if pod.node),
            *((OF_THE_CLUSTER, node.uid) for node in nodes.values() if node.uid),
        }
        found = self._said_of(about)
        claims = {claim for event in found for claim in nominated_for(event)}
        return found + self._said_of({(OF_THE_CLUSTER, pending_pods.REFUSED_CLAIM, claim) for claim in claims})

    def _said_of(self, groups: set[object]) -> list[EventRecord]:
        return [event for cache in self._events for group in groups for event in cache.of(group)]

    def attempts(self, job: JobKey, uid: str = "") -> dict[int, AttemptObjects]:
        """The objects of each attempt of the job; with `uid`, only of the job with this uid."""
        return self._by_attempt(job, lambda record: not uid or record.job_uid == uid)

    def of_others(self, job: JobKey, uid: str) -> dict[int, AttemptObjects]:
        """The objects with the job's name that do not belong to the job with this uid."""
        return self._by_attempt(job, lambda record: record.job_uid != uid)

    def jobs(self) -> set[JobKey]:
        """The jobs that have objects in this cluster."""
        return {job_of(record) for scoped in (self._pods, *self._objects.values()) for record in scoped.all()}

    def _by_attempt(self, job: JobKey, wanted: Callable[[Made], bool]) -> dict[int, AttemptObjects]:
        objects: dict[int, dict[APIResource, list[Any]]] = {}
        for kind, scoped in ((PODS, self._pods), *self._objects.items()):
            for record in scoped.of(job):
                if wanted(record):
                    objects.setdefault(record.attempt, {}).setdefault(kind, []).append(record)
        return {
            number: AttemptObjects(
                top=next((record for kind, found in kinds.items() if kind in self._main for record in found), None),
                derived=tuple(
                    record
                    for kind, found in kinds.items()
                    if kind not in self._main and kind != PODS
                    for record in found
                ),
                pods=tuple(sorted(kinds.get(PODS, ()), key=lambda pod: str(pod.name))),
                admission=self._admission_of(kinds),
            )
            for number, kinds in objects.items()
        }

    def _admission_of(self, kinds: Mapping[APIResource, list[Any]]) -> AdmissionRecord | None:
        owners = (record.uid for kind, found in kinds.items() if kind in self._main for record in found)
        return next((workload for uid in owners for workload in self._admissions.of(uid)), None)

    def unreadable(self, kinds: Iterable[APIResource], namespace: str) -> list[Cache[Any]]:
        """The caches of the kinds, among these and those that every job needs, that cannot be read in that
        namespace."""
        others = (self._objects[kind] for kind in kinds if kind in self._objects)
        wanted: tuple[Scoped[Any], ...] = (self._nodes, self._pods, *others)
        caches = (scoped.within(namespace) for scoped in wanted)
        return [cache for cache in caches if cache is not None and cache.problem]

    def written(self, kind: APIResource, answer: Mapping[str, Any]) -> None:
        """Add the API server's response to a write of the controller to the cache."""
        scoped = self._pods if kind == PODS else self._objects.get(kind)
        if scoped is not None:
            scoped.put(dict(answer))
        else:
            self.guards.written(kind, dict(answer))

    # --- from changes to jobs ---------------------------------------------------------------------------------------

    def _object_changed(self, before: Made | None, after: Made | None) -> None:
        for record in {job_of(record) for record in (before, after) if record is not None}:
            self._wake(record)

    def _pod_changed(self, before: PodRecord | None, after: PodRecord | None) -> None:
        if before is not None and before.node and (after is None or after.node != before.node):
            _forget(self._jobs_on, before.node, before.uid)
        if before is not None and after is None:
            self._failed.deleted(before, self._clock.ticks())
        if after is not None and after.node:
            self._jobs_on.setdefault(after.node, {})[after.uid] = job_of(after)
        self._object_changed(before, after)

    def _node_changed(self, before: NodeRecord | None, after: NodeRecord | None) -> None:
        record = after or before
        if record is not None:
            self._wake_jobs_on(record.name)

    def _wake_jobs_of(self, namespace: str) -> None:
        for job in self.jobs():
            if job[0] == namespace:
                self._wake(job)

    def _wake_jobs_on(self, node: str) -> None:
        for job in set(self._jobs_on.get(node, {}).values()):
            self._wake(job)

    def _admission_changed(self, before: AdmissionRecord | None, after: AdmissionRecord | None) -> None:
        for workload in filter(None, (before, after)):
            for kind, scoped in self._tops.items():
                top = scoped.get(workload.owner_name, workload.namespace) if kind.kind == workload.owner_kind else None
                if top is not None and top.uid == workload.owner_uid:
                    self._wake(job_of(top))

    def _event_changed(self, before: EventRecord | None, after: EventRecord | None) -> None:
        if before is not None:
            for claim in nominated_for(before):
                _forget(self._nominations, claim, before.uid)
        if after is None:
            return
        for claim in nominated_for(after):
            self._nominations.setdefault(claim, {})[after.uid] = after
        if before is not None and before.at == after.at:
            return
        if after.about_kind == "Node":
            concerned = set(self._jobs_on.get(after.about_name, {}).values())
        elif after.reason == pending_pods.REFUSED_CLAIM:
            nominations = self._nominations.get(after.about_name, {}).values()
            concerned = {job for event in nominations for job in self._named_by(event)}
        else:
            concerned = self._named_by(after)
        for job in concerned:
            self._wake(job)

    def _named_by(self, event: EventRecord) -> set[JobKey]:
        """The jobs of the pod or object that the Event is about.

        The name of a batch Job that an operator creates begins with the name of the attempt.
        """
        for scoped in (self._pods, *self._objects.values()):
            record = scoped.get(event.about_name, event.namespace)
            if record is not None and record.uid == event.about_uid:
                return {job_of(record)}
        if event.about_kind != "Job":
            return set()
        parts = event.about_name.split("-")
        attempts = ["-".join(parts[:number]) for number in range(1, len(parts))]
        found = (scoped.get(name, event.namespace) for scoped in self._tops.values() for name in attempts)
        return {job_of(top) for top in found if top is not None}


def _forget(index: dict[str, dict[str, T]], key: str, uid: str) -> None:
    members = index.get(key, {})
    members.pop(uid, None)
    if not members:
        index.pop(key, None)


def _about(event: EventRecord) -> object:
    """The index key of an Event: its namespace, since users may write Events about any object in theirs, and the uid of
    its object, or its reason if the object does not belong to an attempt."""
    match event.reason:
        case pending_pods.REFUSED_CLAIM:
            return event.namespace, event.reason, event.about_name
        case pending_pods.NOT_CREATED:
            return event.namespace, event.reason
    return event.namespace, event.about_uid


def _owner_of(workload: AdmissionRecord) -> str:
    return workload.owner_uid
