"""Changes the number of workers of a RayCluster, independently of its RayJob: adds replacements for pods whose nodes
will be reclaimed, and leaves out workers until the program of an elastic job has begun.

KubeRay copies a RayJob's cluster spec once, so the RayCluster itself is changed: `replicas` of the pod's worker group,
and `scaleStrategy.workersToDelete` when the pod is handed over, or left out because it has no node.

1. KubeRay removes pods at random when a group has more than `replicas`, and counts pods that are being deleted. So the
   controller reduces `replicas` only together with the names of the noticed pods, and keeps the names while they exist.
2. If a pod was replaced twice by accident, the second replacement is named too while it is pending. If it runs, it
stays.
3. KubeRay submits the program when the head and `replicas` workers are ready, and all other pods are gone. So workers
are left out only if all workers of the group have been observed: KubeRay would delete another one otherwise.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spotladder.core.model import PodRole
from spotladder.workloads.rayjob.records import RayClusterRecord, WorkerGroupRecord, rayclusters_of, rayjob_of
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects, ObjectPatch

_GROUPS = "/spec/workerGroupSpecs"
_ALIVE = ("Pending", "Running")


def surplus(objects: AttemptObjects) -> int | None:
    """The number of requested workers beyond those of the RayJob; None where pods cannot be replaced: an autoscaler
    decides, or a worker is more than one pod."""
    found = _surged(objects)
    if found is None:
        return None
    cluster, wanted = found
    return sum(group.replicas - wanted[group.name] for group in cluster.groups if group.name in wanted)


def replacing(objects: AttemptObjects, pods: Collection[str], *, remove: bool) -> ObjectPatch | None:
    """The patch of the RayCluster that adds a replacement for each of these pods (uids), or removes the pods; None if
    no change is needed."""
    found = _surged(objects)
    if found is None:
        return None
    cluster, wanted = found
    patch: list[dict[str, Any]] = []
    for index, group in enumerate(cluster.groups):
        if group.name not in wanted:
            continue
        mine = [pod for pod in objects.pods if pod.role is PodRole.WORKER and pod.group == group.name]
        if any(pod.uid in pods for pod in mine) or group.replicas != wanted[group.name]:
            patch += _patch(index, group, wanted[group.name], mine, pods, remove=remove)
    return ObjectPatch(cluster, tuple(patch)) if patch else None


def resizing(objects: AttemptObjects, workers: int) -> ObjectPatch | None:
    """The patch of the RayCluster that asks for all workers again, or leaves out the workers without a node if these
    are more than `workers` (`WorkloadKind.resizing`)."""
    found = _surged(objects)
    if found is None:
        return None
    cluster, wanted = found
    patch: list[dict[str, Any]] = []
    left = 0
    for index, group in enumerate(cluster.groups):
        if group.name not in wanted:
            continue
        mine = [pod for pod in objects.pods if pod.role is PodRole.WORKER and pod.group == group.name]
        out = {pod.name for pod in mine if pod.deleting or pod.phase not in _ALIVE or not pod.node}
        if workers >= sum(wanted.values()):
            replicas, out = wanted[group.name], set()
        elif len(mine) < group.replicas:
            return None
        else:
            replicas = len(mine) - len(out)
        left += replicas
        patch += _sized(index, group, replicas, out, mine)
    return ObjectPatch(cluster, tuple(patch)) if patch and left >= workers else None


def _patch(
    index: int, group: WorkerGroupRecord, wanted: int, mine: list[PodRecord], pods: Collection[str], *, remove: bool
) -> list[dict[str, Any]]:
    going = [pod for pod in mine if pod.uid in pods]
    removed = {pod.name for pod in going if remove or pod.deleting or pod.phase not in _ALIVE}
    staying = [pod for pod in mine if pod.uid not in pods and not pod.deleting and pod.phase in _ALIVE]
    more = len(staying) - wanted
    if more > 0:
        pending = sorted((pod for pod in staying if pod.phase == "Pending"), key=lambda pod: -(pod.created_at or 0.0))
        removed |= {pod.name for pod in pending[:more]}
        more -= len(pending[:more])
    replicas = wanted + max(0, more) + sum(pod.name not in removed for pod in going)
    return _sized(index, group, replicas, removed, mine)


def _sized(
    index: int, group: WorkerGroupRecord, replicas: int, removed: set[str], mine: list[PodRecord]
) -> list[dict[str, Any]]:
    """The operations that set the replicas of a group and name its removed pods; none if it is so already."""
    present = {pod.name for pod in mine}
    named = sorted(removed | (set(group.to_delete) & present))
    if replicas == group.replicas and removed <= set(group.to_delete):
        return []
    at = f"{_GROUPS}/{index}"
    return [
        {"op": "test", "path": f"{at}/groupName", "value": group.name},
        {"op": "add", "path": f"{at}/replicas", "value": replicas},
        *([{"op": "add", "path": f"{at}/maxReplicas", "value": replicas}] if replicas > group.most else []),
        *([{"op": "add", "path": f"{at}/minReplicas", "value": replicas}] if replicas < group.least else []),
        {"op": "add", "path": f"{at}/scaleStrategy", "value": {"workersToDelete": named}},
    ]


def _surged(objects: AttemptObjects) -> tuple[RayClusterRecord, dict[str, int]] | None:
    """The RayCluster that can be changed, and how many workers the RayJob has in each of its groups on the tier."""
    rayjob, clusters = rayjob_of(objects), rayclusters_of(objects)
    cluster = next((each for each in clusters if rayjob is not None and each.name == rayjob.cluster), None)
    if rayjob is None or rayjob.deleting or cluster is None or cluster.deleting or cluster.autoscaled:
        return None
    wanted = dict(rayjob.groups)
    groups = [group for group in cluster.groups if not group.auxiliary]
    known = {group.name for group in groups} == set(wanted)
    if not wanted or not known or any(group.hosts > 1 for group in groups):
        return None
    return cluster, wanted
