"""The patches of a RayCluster that replace pods before their nodes are reclaimed."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.workloads.jobset.workload import JOBSET
from spotladder.workloads.rayjob.records import RayClusterRecord, RayJobRecord
from spotladder.workloads.rayjob.workload import RAYJOB
from spotladder.workloads.records import RAY_GROUP, PodRecord
from spotladder.workloads.workload import AttemptObjects, ObjectPatch
from tests.workloads.builders import NODES, jobset, metadata, pod

WORKERS = 2


def group(replicas: int = WORKERS, **more: Any) -> dict[str, Any]:
    return {"groupName": "workers", "replicas": replicas, "maxReplicas": 9, **more}


def objects(
    *pods: PodRecord, replicas: int = WORKERS, cluster: dict[str, Any] | None = None, **more: Any
) -> AttemptObjects:
    """A RayJob of two workers with its RayCluster."""
    status = {"jobDeploymentStatus": "Running", "jobStatus": "RUNNING", "rayClusterName": "digits-a001-xk2lp"}
    spec = {"rayClusterSpec": {"workerGroupSpecs": [group()]}}
    job = RayJobRecord.of({"metadata": metadata("digits-a001"), "spec": spec, "status": status})
    running = {"metadata": metadata("digits-a001-xk2lp"), "spec": {"workerGroupSpecs": [group(replicas, **more)]}}
    if cluster is not None:
        running["spec"] |= cluster
    return AttemptObjects(job, (RayClusterRecord.of(running),), pods)


def worker(name: str, **more: Any) -> PodRecord:
    return pod(name, labels={RAY_GROUP: "workers"}, **more)


def named(*pods: str) -> dict[str, Any]:
    return {"workerGroupSpecs": [group(WORKERS + 1, scaleStrategy={"workersToDelete": list(pods)})]}


W0, W1, W2 = worker("w-0"), worker("w-1"), worker("w-2")
GOING = frozenset({"uid-w-0"})

CASES: dict[str, tuple[AttemptObjects, bool, tuple[int, list[str]] | None]] = {
    "one more worker beside the noticed pod": (objects(W0, W1), False, (3, [])),
    "no change is needed": (objects(W0, W1, W2, replicas=3), False, None),
    "handed over": (objects(W0, W1, W2, replicas=3), True, (2, ["w-0"])),
    "handed over, and the pod is being deleted": (
        objects(worker("w-0", deleted=True), W1, W2, replicas=2, scaleStrategy={"workersToDelete": ["w-0"]}),
        True,
        None,
    ),
    "its Ray node has ended: the pod is removed": (
        objects(worker("w-0", phase="Failed"), W1, W2, replicas=3),
        False,
        (2, ["w-0"]),
    ),
    "evicted meanwhile: the pod is named before it is gone": (
        objects(worker("w-0", deleted=True), W1, W2, replicas=3),
        False,
        (2, ["w-0"]),
    ),
    "gone before replicas is reduced": (objects(W1, W2, replicas=3), True, (2, [])),
    "replaced twice: the pending pod is removed": (
        objects(W1, W2, worker("w-3", phase="Pending"), replicas=3),
        True,
        (2, ["w-3"]),
    ),
    "replaced twice, and both run: no change": (objects(W1, W2, worker("w-3"), replicas=3), True, None),
    "a name that KubeRay still needs stays in workersToDelete": (
        objects(W0, W1, worker("w-9", deleted=True), W2, cluster=named("w-9", "w-gone")),
        True,
        (2, ["w-0", "w-9"]),
    ),
}


def changed(change: object) -> tuple[int, list[str]] | None:
    """What a patch of the RayCluster sets: the number of workers and the pods that KubeRay removes."""
    if change is None:
        return None
    assert isinstance(change, ObjectPatch)
    assert (change.target.kind.plural, change.target.name) == ("rayclusters", "digits-a001-xk2lp")
    group = "/spec/workerGroupSpecs/0"
    test, replicas, strategy = change.patch
    assert test == {"op": "test", "path": f"{group}/groupName", "value": "workers"}
    assert [(one["op"], one["path"]) for one in (replicas, strategy)] == [
        ("add", f"{group}/replicas"),
        ("add", f"{group}/scaleStrategy"),
    ]
    return replicas["value"], strategy["value"]["workersToDelete"]


@pytest.mark.parametrize(("state", "remove", "expected"), CASES.values(), ids=list(CASES))
def test_the_patch_sets_replicas_and_the_removed_pods(
    state: AttemptObjects, remove: bool, expected: tuple[int, list[str]] | None
) -> None:
    assert changed(RAYJOB.replacing(state, GOING, remove=remove)) == expected


def surplus(state: AttemptObjects) -> int | None:
    return RAYJOB.read(1, state, NODES).surplus


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (objects(W0, W1), 0),
        (objects(W0, W1, replicas=3), 1),
        (objects(W0, replicas=1), -1),
        (objects(W0, W1, cluster={"enableInTreeAutoscaling": True}), None),
        (objects(W0, W1, numOfHosts=2), None),
        (objects(W0, W1, groupName="other"), None),
        (AttemptObjects(objects().top), None),
    ],
)
def test_surplus_workers(state: AttemptObjects, expected: int | None) -> None:
    assert surplus(state) == expected


WAITING = worker("w-1", phase="Pending", node="")

SIZES: dict[str, tuple[AttemptObjects, int, tuple[int, list[str]] | None]] = {
    "without the worker that has no node": (objects(W0, WAITING), 1, (1, ["w-1"])),
    "a worker that has a node stays": (objects(W0, worker("w-1", phase="Pending")), 1, None),
    "left out already": (objects(W0, replicas=1), 1, None),
    "left out already, and its pod still exists": (
        objects(W0, WAITING, replicas=1, scaleStrategy={"workersToDelete": ["w-1"]}),
        1,
        None,
    ),
    "not all workers are observed: KubeRay would remove another one": (objects(W0), 1, None),
    "a worker that is being deleted is named too": (objects(W0, worker("w-1", deleted=True)), 1, (1, ["w-1"])),
    "fewer would be left than are needed": (objects(W0, WAITING), 2, None),
    "all workers again": (objects(W0, replicas=1), 2, (2, [])),
    "all workers again: a name that KubeRay still needs": (
        objects(W0, WAITING, replicas=1, scaleStrategy={"workersToDelete": ["w-1"]}),
        2,
        (2, ["w-1"]),
    ),
    "all workers are asked for": (objects(W0, W1), 2, None),
}


@pytest.mark.parametrize(("state", "workers", "expected"), SIZES.values(), ids=list(SIZES))
def test_the_patch_asks_for_fewer_workers_and_for_all_again(
    state: AttemptObjects, workers: int, expected: tuple[int, list[str]] | None
) -> None:
    assert changed(RAYJOB.resizing(state, workers)) == expected


def test_a_jobset_has_a_fixed_size() -> None:
    objects = AttemptObjects(jobset(), (), (pod("w-0"),))
    assert JOBSET.read(1, objects, NODES).surplus is None
    assert JOBSET.replacing(objects, {"uid-w-0"}, remove=False) is None
    assert JOBSET.resizing(objects, 1) is None
