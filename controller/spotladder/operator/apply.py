"""The last third of a pass: what was decided is done, each thing so that doing it again changes nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from spotladder.api.record import API_VERSION
from spotladder.clusters.client import Client
from spotladder.clusters.errors import Conflict, Forbidden, Invalid, NotFound
from spotladder.clusters.registry import HOME
from spotladder.core.model import Delete, Drain, Handover, Launch
from spotladder.core.reasons import Reason
from spotladder.errors import InvalidSpec
from spotladder.operator.conditions import Problem, Trouble
from spotladder.operator.failpoints import Point, reach
from spotladder.operator.inventory import Inventory
from spotladder.operator.load import Loaded
from spotladder.operator.records import TIEREDJOBS, JobRecord
from spotladder.workloads import names
from spotladder.workloads.causes import silent
from spotladder.workloads.kinds import WORKLOADS
from spotladder.workloads.rayjob_state import refused_as
from spotladder.workloads.records import (
    GVR,
    JOBSETS,
    PODS,
    RAYCLUSTERS,
    RAYJOBS,
    Made,
)
from spotladder.workloads.workload import AttemptObjects

INSTALL = {
    RAYJOBS: "KubeRay is not installed in this cluster: install the kuberay-operator chart (1.5 or newer)",
    JOBSETS: "JobSet is not installed in this cluster: install the jobset chart",
}


SHORT_GRACE = 5
"""Seconds that pods of an attempt that is being removed may take: what was to be committed is, the drain is over. Ray
would otherwise hold its node for the whole grace of the pod, which is as long as the cloud's notice."""


class Applier:
    """Does actions in one cluster."""

    def __init__(self, client: Client, inventory: Inventory, *, environment: Mapping[str, str]) -> None:
        self._client = client
        self._inventory = inventory
        self._environment = environment

    async def launch(self, loaded: Loaded, action: Launch) -> Problem | None:
        """Make the attempt exist; why it cannot be made, when that is not for lack of capacity.

        Raises ClusterUnreachable, Throttled: try again.
        """
        tier = loaded.tiers.get(action.tier)
        if tier is None:
            return None  # it is unavailable, and the core knows
        for unreadable in self._inventory.unreadable(loaded.workload.watched, loaded.record.namespace):
            if unreadable.absent and unreadable.kind in INSTALL:
                return Problem(Trouble.NOT_INSTALLED, INSTALL[unreadable.kind])
        reach(Point.BEFORE_LAUNCH)
        try:
            objects = loaded.workload.render(
                loaded.job, names.Origin(loaded.record.uid), tier, action.attempt, self._environment
            )
        except InvalidSpec as error:
            return Problem(Trouble.INVALID_SPEC, str(error))
        digest = sha256(json.dumps(objects, sort_keys=True).encode()).hexdigest()[:16]
        if problem := await self._refused(loaded, action.attempt, digest):
            return problem
        main = objects[-1]["metadata"]
        main["annotations"] = {**(main.get("annotations") or {}), names.DIGEST: digest}
        kinds = {(kind.api_version, kind.kind): kind for kind in loaded.workload.made}
        for index, body in enumerate(objects):
            if index:
                reach(Point.BETWEEN_OBJECTS)
            kind = kinds[body["apiVersion"], body["kind"]]
            if tier.cluster == HOME:
                body["metadata"]["ownerReferences"] = [owner(loaded)]
            if refusal := await self._make(kind, body):
                return refusal
        reach(Point.AFTER_LAUNCH)
        return None

    async def _refused(self, loaded: Loaded, attempt: int, digest: str) -> Problem | None:
        """What is made of this attempt will never run, as its operator says. If the job was corrected since, remove it:
        it is made anew, under the same number, once it is gone."""
        found = self._objects(loaded, attempt)
        why = refused_as(found)
        if found.rayjob is None or not why:
            return None
        if found.rayjob.digest != digest and not found.rayjob.deleting:
            await self._remove_made(loaded, attempt)
        return Problem(Trouble.BLOCKED, f"RayJob {found.rayjob.name} is not valid: {why}")

    async def _make(self, kind: GVR, body: dict[str, Any]) -> Problem | None:
        name = f"{kind.kind} {body['metadata']['namespace']}/{body['metadata']['name']}"
        try:
            made = await self._client.apply(kind, body)
        except NotFound as error:
            return Problem(Trouble.NOT_INSTALLED, INSTALL.get(kind) or f"{name} cannot be made: {error.message}")
        except Conflict as error:
            return Problem(
                Trouble.NAME_TAKEN, f"{name} exists and is not this job's: remove or rename it ({error.message})"
            )
        except (Forbidden, Invalid) as error:
            return Problem(Trouble.LAUNCH_REFUSED, f"{name} is refused: {error.message}")
        self._inventory.written(kind, made)
        return None

    async def drain(self, loaded: Loaded, action: Drain) -> None:
        """Tell every pod of the attempt, by an annotation that it sees as a file."""
        reach(Point.BEFORE_DRAIN)
        notice = {
            "kind": "notice" if action.reason is Reason.EVICTION_NOTICE else "drain",
            "deadline": round(action.deadline, 3),
            "reason": str(action.reason),
        }
        text = json.dumps(notice, separators=(",", ":"))
        for pod in self._objects(loaded, action.attempt).pods:
            if pod.notice != text and pod.phase in ("Pending", "Running"):
                patch = {"metadata": {"uid": pod.uid, "annotations": {names.NOTICE: text}}}
                try:
                    told = await self._client.merge(PODS, pod.name, pod.namespace, body=patch)
                except (NotFound, Conflict):
                    continue  # it is gone, or another stands in its place: that one is told when it is seen
                self._inventory.written(PODS, told)
        reach(Point.AFTER_DRAIN)

    async def delete(self, loaded: Loaded, action: Delete) -> None:
        """Remove what is left of the attempt, from the top down."""
        reach(Point.BEFORE_DELETE)
        objects = self._objects(loaded, action.attempt)
        tops = [found for found in (objects.rayjob, objects.jobset) if found is not None]
        if any(not found.deleting for found in tops) or (not tops and not objects.pods and not objects.rayclusters):
            await self._remove_made(loaded, action.attempt)
        elif not tops:
            await self._remove_orphans(objects)
        for pod in objects.pods:
            if pod.deleting and pod.grace > SHORT_GRACE:
                await self._remove(PODS, pod.name, pod.namespace, pod.uid, grace=SHORT_GRACE)
        reach(Point.AFTER_DELETE)

    async def remove_all(self, record: JobRecord) -> None:
        """Remove everything that was ever made for the job, whatever kind of workload it is."""
        selector = f"{names.MANAGED_BY}={names.MANAGER},{names.JOB}={record.name}"
        for kind in dict.fromkeys(kind for workload in WORKLOADS for kind in reversed(workload.made)):
            await self._remove_labelled(kind, record.namespace, selector)

    async def _remove_made(self, loaded: Loaded, attempt: int) -> None:
        selector = f"{names.MANAGED_BY}={names.MANAGER},{names.JOB}={loaded.record.name},{names.ATTEMPT}={attempt}"
        for kind in reversed(loaded.workload.made):
            await self._remove_labelled(kind, loaded.record.namespace, selector)

    async def _remove_labelled(self, kind: GVR, namespace: str, selector: str) -> None:
        try:
            await self._client.delete_all(kind, namespace, labels=selector)
        except NotFound:
            return  # the kind itself is gone, and all of it with it

    async def _remove_orphans(self, objects: AttemptObjects) -> None:
        """What its owner left behind: KubeRay's cluster, then pods."""
        clusters: list[tuple[GVR, Made]] = [(RAYCLUSTERS, found) for found in objects.rayclusters]
        for kind, found in clusters or [(PODS, pod) for pod in objects.pods]:
            if not found.deleting:
                await self._remove(kind, found.name, found.namespace, found.uid)

    async def _remove(self, kind: GVR, name: str, namespace: str, uid: str, *, grace: int | None = None) -> None:
        try:
            await self._client.delete(kind, name, namespace, uid=uid, grace=grace)
        except (NotFound, Conflict):
            return  # it is gone, or it is not that one any more

    async def let_go(self, loaded: Loaded) -> None:
        """Remove the pods on nodes that are gone or that nobody hears of any more.

        They are lost already; but as long as they are there KubeRay makes none in their place, and Kubernetes takes
        minutes to remove them: nobody confirms their end. They may still run: where commits are fenced, that does no
        harm.
        """
        if loaded.spec.handover is not Handover.FENCED:
            return
        for objects in loaded.objects.values():
            nodes = self._inventory.nodes_of(objects)
            for pod in objects.pods:
                if pod.node and silent(nodes.get(pod.node)):
                    await self._remove(PODS, pod.name, pod.namespace, pod.uid, grace=0)

    def _objects(self, loaded: Loaded, attempt: int) -> AttemptObjects:
        return loaded.objects.get(attempt, AttemptObjects())


def owner(loaded: Loaded) -> dict[str, Any]:
    """Kubernetes removes what is made when the TieredJob is gone."""
    return {
        "apiVersion": API_VERSION,
        "kind": TIEREDJOBS.kind,
        "name": loaded.record.name,
        "uid": loaded.record.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
