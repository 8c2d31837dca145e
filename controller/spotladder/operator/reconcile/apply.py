"""The API calls behind each action of a decision. Every call is idempotent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from spotladder.api.record import API_VERSION
from spotladder.clusters.errors import ClusterUnreachable, Conflict, Forbidden, Invalid, NotFound
from spotladder.clusters.registry import HOME
from spotladder.core.backend import launch_variables
from spotladder.core.contract import Notice, Variable
from spotladder.core.durations import format_duration
from spotladder.core.model import Delete, Drain, Handover, JobState, Launch, Replace, Resize, TakeOver
from spotladder.core.reasons import Reason
from spotladder.custom_resources import JobRecord
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.failpoints import Point, reach
from spotladder.operator.inventory.clusters import Clusters, Located, WorkloadCluster
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.reconcile.copies import Copies
from spotladder.operator.reconcile.preflight import Preflight, lacking, lacking_namespace
from spotladder.resources import NAMESPACES, PODS, TIEREDJOBS, APIResource
from spotladder.workloads import names
from spotladder.workloads.causes import silent
from spotladder.workloads.kinds import all_made, main_kinds
from spotladder.workloads.records import Made, PodRecord, WorkloadRecord
from spotladder.workloads.references import Reference, references
from spotladder.workloads.workload import AttemptObjects, ObjectPatch

SHORT_GRACE = 5
"""Grace period in seconds of the pods of an attempt that is being removed. The drain is over, so all commits are done.
Ray would otherwise hold its node for the pod's whole grace period, which is as long as the cloud's notice."""


ENDED = ("Failed", "Succeeded")
"""Phases of a pod whose containers have ended: it holds no node. Its operator or the garbage collector removes it."""


class Applier:
    """Executes actions, each in the cluster of its attempt."""

    def __init__(
        self, clusters: Clusters, *, preflight: Preflight, copies: Copies, environment: Mapping[str, str]
    ) -> None:
        self._clusters = clusters
        self._preflight = preflight
        self._copies = copies
        self._environment = environment

    async def launch(self, loaded: Loaded, action: Launch) -> Diagnosis | None:
        """Create the attempt. Returns why it cannot be created, if capacity is not the reason.

        Raises ClusterUnreachable, Throttled, Busy: retry later.
        """
        tier = loaded.tiers.resolved.get(action.tier)
        cluster = None if tier is None else self._clusters.of(tier.cluster)
        if tier is None or cluster is None:
            return None  # The tier is unavailable, and the core knows it.
        for unreadable in cluster.inventory.unreadable(loaded.workload.records, loaded.record.namespace):
            if unreadable.absent and unreadable.kind == loaded.workload.main:
                message = loaded.workload.install.format(cluster=_named(cluster))
                return Diagnosis(ConditionReason.NOT_INSTALLED, message)
        reach(Point.BEFORE_LAUNCH)
        origin = names.Origin(loaded.record.uid, cluster.home)
        try:
            hang_timeout = {Variable.HANG_TIMEOUT: format_duration(loaded.job.spec.hang_timeout)}
            variables = {**self._environment, **hang_timeout, **launch_variables(action)}
            objects = loaded.workload.render(
                loaded.job, origin, tier.avoiding(action.avoids), action.attempt, variables
            )
        except InvalidSpec as error:
            return Diagnosis(ConditionReason.INVALID_SPEC, str(error))
        digest = sha256(json.dumps(objects, sort_keys=True).encode()).hexdigest()[:16]
        if problem := await self._refused(loaded, action.attempt, digest):
            return problem
        if _is_there(loaded.found.attempts.get(action.attempt), cluster):
            return None  # Also if the spec has changed since: a new spec applies to the next attempt.
        main = objects[-1]["metadata"]
        main["annotations"] = {**(main.get("annotations") or {}), names.DIGEST: digest}
        if problem := self._occupied(cluster, loaded.record, action.attempt):
            return problem
        with cluster.turn():
            if problem := await self._prepare(cluster, loaded.record, references(objects, tier.queue)):
                return problem
            if problem := await self._make_all(cluster, loaded, objects, action.attempt):
                return problem
        reach(Point.AFTER_LAUNCH)
        return None

    async def _make_all(
        self, cluster: WorkloadCluster, loaded: Loaded, objects: list[dict[str, Any]], attempt: int
    ) -> Diagnosis | None:
        """Create the objects in order; the main object, by which the others are found, is the last."""
        kinds = {(kind.api_version, kind.kind): kind for kind in loaded.workload.made}
        made: list[tuple[APIResource, Made]] = []
        for body in objects:
            if made:
                reach(Point.BETWEEN_OBJECTS)
            if not cluster.monitor:
                body["metadata"]["ownerReferences"] = [owner(loaded)]
            kind, metadata = kinds[body["apiVersion"], body["kind"]], body["metadata"]
            if refusal := await self._make(cluster, kind, body, loaded.record, attempt):
                for earlier in (
                    made if cluster.monitor else ()
                ):  # In the home cluster they are deleted with the TieredJob; in a member cluster nothing deletes them.
                    await self._remove(cluster, *earlier)
                return refusal
            made.append((kind, Made(name=metadata["name"], namespace=metadata["namespace"], uid="")))
        return None

    async def _refused(self, loaded: Loaded, attempt: int, digest: str) -> Diagnosis | None:
        """Why the workload's operator will never run the attempt that exists; None when it may, or none exists.

        If the job was corrected since, the attempt is removed. It is created again under the same number once it is
        gone.
        """
        found = loaded.found.attempts.get(attempt)
        top = found.objects.top if found is not None else None
        if found is None or top is None or not (why := main_kinds()[top.kind].refusal(found.objects)):
            return None
        if top.digest != digest and not top.deleting:
            with found.cluster.turn():
                await self._remove_attempt(found.cluster, top)
        return Diagnosis(ConditionReason.BLOCKED, f"{top.kind.kind} {top.name} is not valid: {why}")

    async def _prepare(
        self, cluster: WorkloadCluster, record: JobRecord, named: Sequence[Reference]
    ) -> Diagnosis | None:
        """Ensure that the objects that the pods refer to exist in the cluster."""
        if cluster is not self._clusters.home:
            if await self._preflight.missing(cluster, "", [Reference(NAMESPACES, record.namespace)]):
                return Diagnosis(ConditionReason.NAMESPACE_MISSING, lacking_namespace(cluster, record.namespace))
            if problem := await self._copies.bring(cluster, record.namespace, record.copies):
                return problem
        missing = await self._preflight.missing(cluster, record.namespace, named)
        if missing:
            return Diagnosis(ConditionReason.REFERENCES_MISSING, lacking(cluster, record.namespace, missing))
        return None

    def _occupied(self, cluster: WorkloadCluster, record: JobRecord, attempt: int) -> Diagnosis | None:
        """In a member cluster, objects are not deleted with their TieredJob: those of a deleted job may still have the
        attempt's name."""
        if cluster is self._clusters.home or attempt not in cluster.inventory.of_others(record.key, record.uid):
            return None
        name = names.attempt_name(record.name, attempt)
        message = f"{name} of an earlier TieredJob of this name is being removed{_in(cluster)}"
        return Diagnosis(ConditionReason.NAME_TAKEN, message)

    async def _make(
        self, cluster: WorkloadCluster, kind: APIResource, body: dict[str, Any], record: JobRecord, attempt: int
    ) -> Diagnosis | None:
        namespace = body["metadata"]["namespace"]
        name = f"{kind.kind} {namespace}/{body['metadata']['name']}"
        try:
            made = await cluster.client.apply(kind, body)
        except NotFound as error:
            if error.about == "namespaces":
                return Diagnosis(ConditionReason.NAMESPACE_MISSING, lacking_namespace(cluster, namespace))
            workload = main_kinds().get(kind)
            install = (workload.install if workload else "{cluster} does not know the kind").format(
                cluster=_named(cluster)
            )
            return Diagnosis(ConditionReason.NOT_INSTALLED, f"{name} cannot be created: {install}")
        except Conflict as error:
            if self._is_ours(cluster, kind, record, attempt):
                return None
            message = f"{name} exists{_in(cluster)} and is not this job's: remove or rename it ({error.message})"
            return Diagnosis(ConditionReason.NAME_TAKEN, message)
        except (Forbidden, Invalid) as error:
            return Diagnosis(ConditionReason.LAUNCH_REFUSED, f"{name} is refused{_in(cluster)}: {error.message}")
        except ClusterUnreachable as error:
            raise ClusterUnreachable(
                f"{name} cannot be created{_in(cluster)}: {_cause(error)}; check that the API server and its admission "
                "webhooks answer (JobSet's controller has one)"
            ) from None
        cluster.inventory.written(kind, made)
        return None

    def _is_ours(self, cluster: WorkloadCluster, kind: APIResource, record: JobRecord, attempt: int) -> bool:
        """Whether the object is of this very attempt. Its operator sets defaults in fields of the controller's, and
        owns them then."""
        found = cluster.inventory.attempts(record.key, record.uid).get(attempt, AttemptObjects())
        return found.top is not None and found.top.kind == kind

    async def drain(self, loaded: Loaded, action: Drain) -> None:
        """Annotate every pod of the attempt with the notice, which the program sees as a file."""
        reach(Point.BEFORE_DRAIN)
        found = loaded.found.attempts.get(action.attempt)
        if found is not None and not found.cluster.problem:
            await self._notify(found, found.objects.pods, Notice.of(action.reason, action.deadline))
        reach(Point.AFTER_DRAIN)

    async def _notify(self, found: Located, pods: Sequence[PodRecord], notice: Notice) -> None:
        text = notice.encode()
        with found.cluster.turn():
            for pod in pods:
                if pod.notice != text and pod.phase in ("Pending", "Running"):
                    patch = {"metadata": {"uid": pod.uid, "annotations": {names.NOTICE: text}}}
                    try:
                        updated = await found.cluster.client.merge(PODS, pod.name, pod.namespace, body=patch)
                    except (NotFound, Conflict):
                        continue  # The pod is gone or replaced: its replacement is annotated when it is observed.
                    found.cluster.inventory.written(PODS, updated)

    async def take_over(self, loaded: Loaded, action: TakeOver) -> None:
        """Annotate every pod of the attempt, so that its program, which is held, starts."""
        found = loaded.found.attempts.get(action.attempt)
        if found is not None and not found.cluster.problem:
            await self._notify(found, found.objects.pods, Notice.of_takeover())

    async def replace(self, loaded: Loaded, action: Replace) -> None:
        """Start replacements of noticed pods. For a handover, notify these pods first; they are removed after
        `REMOVAL_DELAY`, so that the program can read the notice."""
        found = loaded.found.attempts.get(action.attempt)
        if found is None or found.cluster.problem:
            return
        if action.hand_over:
            going = [pod for pod in found.objects.pods if pod.uid in action.pods]
            await self._notify(found, going, Notice.of_handover(action.deadline))
        await self._change(found, loaded.workload.replacing(found.objects, action.pods, remove=action.remove))

    async def resize(self, loaded: Loaded, action: Resize) -> None:
        """Change the number of workers that are requested for an attempt."""
        found = loaded.found.attempts.get(action.attempt)
        if found is not None and not found.cluster.problem:
            await self._change(found, loaded.workload.resizing(found.objects, action.workers))

    async def _change(self, found: Located, change: ObjectPatch | None) -> None:
        if change is None:
            return
        target = change.target
        with found.cluster.turn(), suppress(NotFound):  # it is gone: so is the attempt
            changed = await found.cluster.client.patch(target.kind, target.name, target.namespace, change.patch)
            found.cluster.inventory.written(target.kind, changed)

    async def delete(self, loaded: Loaded, action: Delete) -> None:
        """Remove the remaining objects of the attempt, owners first."""
        found = loaded.found.attempts.get(action.attempt)
        reach(Point.BEFORE_DELETE)
        if found is None:
            await self._clear_unseen(loaded, action.attempt)
        elif not found.cluster.problem:  # Otherwise the attempt is fenced, and is removed when its cluster is up again.
            await self._clear(found, hurry=action.reason is not Reason.PREEMPTED)
        reach(Point.AFTER_DELETE)

    async def delete_strays(self, loaded: Loaded) -> None:
        """Remove objects of attempts in clusters to which they do not belong."""
        for _, found in loaded.found.strays:
            if not found.cluster.problem:
                await self._clear(found)

    async def sweep(self, key: JobKey, uid: str) -> bool:
        """Remove the objects of deleted TieredJobs with this name in member clusters. Returns whether there were any.

        `uid` is that of the current TieredJob with this name, "" if there is none.
        """
        found = self._clusters.abandoned(key, uid)
        for _, located in found:
            await self._clear(located)
        return bool(found)

    async def remove_all(self, record: JobRecord) -> None:
        """Remove all objects of the job, whatever its kind of workload."""
        for cluster in (self._clusters.home, *self._clusters.others):
            with cluster.turn():
                await self._remove_labelled(cluster, all_made(), record.namespace, f"{names.JOB}={record.name}")

    async def _clear_unseen(self, loaded: Loaded, attempt: int) -> None:
        """The names of its objects are unknown: delete by label."""
        live = loaded.state.attempt
        tier = loaded.clusters.get(live.tier) if live and live.number == attempt else None
        cluster = self._clusters.of(tier or HOME) or self._clusters.home
        if not cluster.problem:
            which = f"{names.JOB}={loaded.record.name},{names.ATTEMPT}={attempt}"
            with cluster.turn():
                await self._remove_labelled(cluster, loaded.workload.made, loaded.record.namespace, which)

    async def _clear(self, found: Located, *, hurry: bool = True) -> None:
        """Delete the attempt's objects, then remaining objects of its deleted owner. Without `hurry` the pods keep
        their own grace period, because the program was not asked to commit before."""
        objects, top = found.objects, found.objects.top
        with found.cluster.turn():
            if top is None:
                for entry in objects.derived:  # Their owner is gone, but they remain.
                    if not entry.deleting:
                        await self._remove(found.cluster, entry.kind, entry)
            elif not top.deleting:
                await self._remove_attempt(found.cluster, top)
            # Before their owner is deleted: a kubelet does not shorten a termination that has begun.
            held = [pod for pod in objects.pods if pod.phase not in ENDED]
            slow = [pod for pod in held if hurry and (not pod.deleting or pod.grace > SHORT_GRACE)]
            hurried = (self._remove(found.cluster, PODS, pod, grace=SHORT_GRACE) for pod in slow)
            for failure in await asyncio.gather(*hurried, return_exceptions=True):
                if failure is not None:
                    raise failure

    async def _remove_attempt(self, cluster: WorkloadCluster, top: WorkloadRecord) -> None:
        """Delete by name: to delete by labels, the API server reads all objects of the kind in the namespace.

        The main object is deleted last, because the next reconcile finds the remaining objects through it.
        """
        for kind in main_kinds()[top.kind].made:
            if kind != top.kind:  # It has the same name.
                await self._remove(cluster, kind, replace(top, uid=""))
                reach(Point.BETWEEN_DELETES)
        await self._remove(cluster, top.kind, top)

    async def _remove_labelled(
        self, cluster: WorkloadCluster, made: Sequence[APIResource], namespace: str, which: str
    ) -> None:
        for kind in reversed(made):
            try:
                await cluster.client.delete_all(kind, namespace, labels=f"{cluster.selector},{which}")
            except NotFound:
                continue  # The kind itself is gone, with all of its objects.

    async def _remove(
        self, cluster: WorkloadCluster, kind: APIResource, entry: Made, *, grace: int | None = None
    ) -> None:
        try:
            answer = await cluster.client.delete(kind, entry.name, entry.namespace, uid=entry.uid, grace=grace)
        except (NotFound, Conflict):
            return  # It is gone or was replaced.
        # Otherwise a reconcile before the watch's event deletes it again. Of an object that is gone, there is only a
        # Status or its last version.
        if answer and (answer.get("metadata") or {}).get("deletionTimestamp"):
            cluster.inventory.written(kind, answer)

    async def remove_silent_pods(self, loaded: Loaded, state: JobState) -> None:
        """Remove the pods on nodes that are gone or silent.

        They are lost already, but KubeRay does not replace them while they exist, and Kubernetes removes them only
        after minutes because no kubelet confirms their end. They may still run, which is harmless with fenced commits.
        While the silence is a loss of contact (`state`), the pods of the live attempt are kept. A pod that is replaced
        inside the attempt is kept until its operator removes it, which then knows that it needs no other one.
        """
        live = state.attempt
        kept = state.attempt if state.impeded is not None and state.impeded.reason is Reason.CONTACT_LOST else None
        if loaded.spec.handover is not Handover.FENCED:
            return
        for number, found in loaded.found.attempts.items():
            if found.cluster.problem or (kept is not None and kept.number == number):
                continue
            nodes = found.cluster.inventory.nodes_of(found.objects)
            seen = loaded.seen.attempt(number)
            leaving = live.leaving if live is not None and live.number == number and seen and seen.surplus else ()
            for pod in found.objects.pods:
                if pod.uid in leaving and not pod.deleting:
                    continue
                if pod.node and silent(nodes.get(pod.node)):
                    with found.cluster.turn():
                        if pod.slot and pod.phase not in ENDED:
                            await self._fail(found.cluster, pod)
                        await self._remove(found.cluster, PODS, pod, grace=0)

    async def _fail(self, cluster: WorkloadCluster, pod: PodRecord) -> None:
        """Set the phase of a Job's pod to Failed, as Kubernetes' own garbage collector of pods does before it deletes
        one.

        The Job keeps it with a finalizer until its phase is final, and does not replace it before.
        """
        status = {"phase": "Failed", "reason": "NodeLost", "message": f"node {pod.node} no longer reports"}
        body = {"metadata": {"uid": pod.uid}, "status": status}
        with suppress(NotFound, Conflict):  # It is gone or was replaced.
            await cluster.client.merge(PODS, pod.name, pod.namespace, body=body, subresource="status")


def _is_there(found: Located | None, cluster: WorkloadCluster) -> bool:
    """Whether the attempt was created."""
    return found is not None and found.cluster is cluster and found.objects.top is not None


def _cause(error: ClusterUnreachable) -> str:
    """The error without the request at its beginning."""
    return str(error).partition(": ")[2] or str(error)


def _named(cluster: WorkloadCluster) -> str:
    return f"cluster {cluster.name}" if cluster.monitor else "this cluster"


def _in(cluster: WorkloadCluster) -> str:
    return f" in cluster {cluster.name}" if cluster.monitor else ""


def owner(loaded: Loaded) -> dict[str, Any]:
    """Kubernetes deletes the object with the TieredJob."""
    return {
        "apiVersion": API_VERSION,
        "kind": TIEREDJOBS.kind,
        "name": loaded.record.name,
        "uid": loaded.record.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
