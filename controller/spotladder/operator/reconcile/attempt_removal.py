"""Removes attempts from their clusters: the API calls behind `Delete`, and the cleanup after each reconcile. Every
call is idempotent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from spotladder.api.capacitytier import HOME
from spotladder.api.stored import JobRecord
from spotladder.clusters.errors import Conflict, NotFound
from spotladder.core.model import Delete, Exit, Handover, JobState
from spotladder.core.reasons import Reason
from spotladder.operator.inventory.clusters import Clusters, Located, WorkloadCluster
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.resources import PODS, APIResource
from spotladder.workloads import names
from spotladder.workloads.causes import silent
from spotladder.workloads.exits import exit_of_code
from spotladder.workloads.kinds import all_made, main_kinds
from spotladder.workloads.records import Made, PodRecord, WorkloadRecord, job_of
from spotladder.workloads.workload import WorkloadKind

SHORT_GRACE = 5
"""Grace period in seconds of the pods of an attempt that is being removed. The drain is over, so all commits are done.
Ray would otherwise hold its node for the pod's whole grace period, which is as long as the cloud's notice."""

ENDED = ("Failed", "Succeeded")
"""Phases of a pod whose containers have ended: it holds no node. Its operator or the garbage collector removes it."""


class AttemptRemover:
    """Removes objects of attempts, each in its cluster."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters

    async def delete(self, loaded: Loaded, action: Delete) -> None:
        """Remove the remaining objects of the attempt, owners first."""
        found = loaded.found.attempts.get(action.attempt)
        if found is None:
            await self._clear_unseen(loaded, action.attempt)
        elif not found.cluster.problem:  # Otherwise the attempt is fenced, and is removed when its cluster is up again.
            await self._clear(found, hurry=action.reason is not Reason.PREEMPTED, last=loaded.spec.suspend)

    async def delete_strays(self, loaded: Loaded) -> None:
        """Remove objects of attempts in clusters to which they do not belong."""
        for _, found in loaded.found.strays:
            if not found.cluster.problem:
                await self._clear(found)

    async def sweep(self, key: JobKey, uid: str) -> bool:
        """Remove the objects of deleted TieredJobs with this name in member clusters. Returns whether there were any.

        `uid` is the uid of the current TieredJob with this name, or an empty string if no such job exists.
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

    async def _clear(self, found: Located, *, hurry: bool = True, last: bool = False) -> None:
        """Delete the attempt's objects, then remaining objects of its deleted owner. Without `hurry` the pods keep
        their own grace period, because the program was not asked to commit before. A pod without a node has no grace
        period: it is deleted at once with its owner. `last`: no attempt follows."""
        objects, top = found.objects, found.objects.top
        with found.cluster.turn():
            if top is None:
                for entry in objects.derived:  # Their owner is gone, but they remain.
                    if not entry.deleting:
                        await self.remove(found.cluster, entry.kind, entry)
            elif not top.deleting:
                await self.remove_attempt(found.cluster, top, last=last)
            # Before their owner is deleted: a kubelet does not shorten a termination that has begun. One call for each
            # pod: to delete by label, the API server reads all pods of the namespace, which costs more.
            held = [pod for pod in objects.pods if pod.phase not in ENDED and (pod.node or top is None)]
            slow = [pod for pod in held if hurry and (not pod.deleting or pod.grace > SHORT_GRACE)]
            hurried = (self.remove(found.cluster, PODS, pod, grace=SHORT_GRACE) for pod in slow)
            for failure in await asyncio.gather(*hurried, return_exceptions=True):
                if failure is not None:
                    raise failure

    async def remove_attempt(self, cluster: WorkloadCluster, top: WorkloadRecord, *, last: bool = False) -> None:
        """Delete by name: to delete by labels, the API server reads all objects of the kind in the namespace.

        The main object is deleted last, because the next reconcile finds the remaining objects through it. The guards
        that all attempts share are kept unless this is the `last` one.
        """
        if cluster.monitor is not None:  # In a member cluster they have the attempt's name.
            for kind in guard_kinds(main_kinds()[top.kind]):
                await self.remove(cluster, kind, replace(top, uid=""))
        elif last:
            await self._remove_guards(main_kinds()[top.kind], job_of(top))
        await self.remove(cluster, top.kind, top)

    async def remove_guards(self, loaded: Loaded) -> None:
        """Remove the guards that all attempts of a job share: the job has ended."""
        await self._remove_guards(loaded.workload, loaded.record.key)

    async def _remove_guards(self, workload: WorkloadKind, key: JobKey) -> None:
        home, (namespace, job) = self._clusters.home, key
        with home.turn():
            for kind in guard_kinds(workload):
                await self.remove(home, kind, Made(name=names.guards_name(job), namespace=namespace, uid=""))

    async def _remove_labelled(
        self, cluster: WorkloadCluster, made: Sequence[APIResource], namespace: str, which: str
    ) -> None:
        for kind in reversed(made):
            try:
                await cluster.client.delete_all(kind, namespace, labels=f"{cluster.selector},{which}")
            except NotFound:
                continue  # The kind itself is gone, with all of its objects.

    async def remove(
        self, cluster: WorkloadCluster, kind: APIResource, entry: Made, *, grace: int | None = None
    ) -> None:
        """Delete one object."""
        try:
            answer = await cluster.client.delete(kind, entry.name, entry.namespace, uid=entry.uid, grace=grace)
        except (NotFound, Conflict):
            return  # It is gone or was replaced.
        # Otherwise a reconcile before the watch's event deletes it again. Of an object that is gone, there is only a
        # Status or its last version.
        if answer and (answer.get("metadata") or {}).get("deletionTimestamp"):
            cluster.inventory.written(kind, answer)

    async def remove_outlived_pods(self, loaded: Loaded) -> None:
        """Remove the pods whose program was killed while their other containers continue to run. Until such a pod is
        gone, its operator does not replace it."""
        for found in loaded.found.attempts.values():
            for pod in found.objects.pods:
                program = pod.program_container
                killed = program is not None and exit_of_code(program.exit_code or 0) is Exit.LOST
                if pod.outlived and killed and not pod.deleting and not found.cluster.problem:
                    with found.cluster.turn():
                        await self.remove(found.cluster, PODS, pod, grace=SHORT_GRACE)

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
            leaving = (
                live.notice.leaving if live is not None and live.number == number and seen and seen.surplus else ()
            )
            for pod in found.objects.pods:
                if pod.uid in leaving and not pod.deleting:
                    continue
                if pod.node and silent(nodes.get(pod.node)):
                    with found.cluster.turn():
                        if pod.slot and pod.phase not in ENDED:
                            await self._fail(found.cluster, pod)
                        await self.remove(found.cluster, PODS, pod, grace=0)

    async def _fail(self, cluster: WorkloadCluster, pod: PodRecord) -> None:
        """Set the phase of a Job's pod to Failed, as Kubernetes' own garbage collector of pods does before it deletes
        one.

        The Job keeps it with a finalizer until its phase is final, and does not replace it before.
        """
        status = {"phase": "Failed", "reason": "NodeLost", "message": f"node {pod.node} no longer reports"}
        body = {"metadata": {"uid": pod.uid}, "status": status}
        with suppress(NotFound, Conflict):  # It is gone or was replaced.
            await cluster.client.merge(PODS, pod.name, pod.namespace, body=body, subresource="status")


def guard_kinds(workload: WorkloadKind) -> list[APIResource]:
    """The kinds of the objects that an attempt has beside its main object."""
    return [kind for kind in workload.made if kind != workload.main]
