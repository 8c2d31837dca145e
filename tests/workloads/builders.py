"""Builders for Kubernetes objects as an API server sends them, and for their records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.document import Document
from spotladder.api.tieredjob import TieredJob
from spotladder.workloads import names
from spotladder.workloads.jobset.records import JobSetRecord
from spotladder.workloads.listed_tiers import resolve_tiers
from spotladder.workloads.rayjob.records import RayClusterRecord, RayJobRecord
from spotladder.workloads.records import (
    COMPLETION_INDEX,
    JOB_INDEX,
    REPLICATED_JOB,
    RESTART_ATTEMPT,
    EventRecord,
    NodeRecord,
    PodRecord,
)
from spotladder.workloads.tiers import PlacedTier

AT = "2026-11-21T12:00:00Z"
IMAGE = "rayproject/ray:2.58.1"


def metadata(name: str, **more: Any) -> dict[str, Any]:
    labels = {**names.labels("digits", 1, "spot-a", names.Origin("u-1")), **more.pop("labels", {})}
    return {
        "name": name, "namespace": "team-a", "uid": f"uid-{name}", "resourceVersion": "7", "creationTimestamp": AT,
        "labels": labels, **more,
    }  # fmt: skip


def pod_object(
    name: str = "w-0",
    *,
    phase: str = "Running",
    node: str = "node-1",
    role: str = "worker",
    ready: bool = True,
    deleted: bool = False,
    disruption: str = "",
    reason: str = "",
    message: str = "",
    unschedulable: str = "",
    why: str = "Unschedulable",
    container: dict[str, Any] | None = None,
    others: Sequence[dict[str, Any]] = (),
    native: Sequence[dict[str, Any]] = (),
    initial: Sequence[dict[str, Any]] = (),
    exit_code: int | None = None,
    exit_reason: str = "",
    exit_message: str = "",
    waiting: str = "",
    waiting_message: str = "",
    labels: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A pod as the kubelet reports it. `container` is the status of its program container, `others` are those of the
    containers beside it, `native` those of native sidecars, `initial` those of init containers."""
    meta = metadata(name, labels={names.ROLE: role, **(labels or {})})
    if deleted:
        meta["deletionTimestamp"] = "2026-11-21T12:02:00Z"
    state: dict[str, Any] = {"running": {"startedAt": AT}}
    if exit_code is not None:
        state = {"terminated": {"exitCode": exit_code, "reason": exit_reason or "Error", "message": exit_message}}
    elif waiting or phase == "Pending":
        state = {"waiting": {"reason": waiting or "ContainerCreating", "message": waiting_message}}
    program = container or {"name": "ray", "state": state, "ready": ready and "running" in state}
    all_ready = all(entry.get("ready") for entry in (program, *others, *native))
    conditions = [
        {"type": kind, "status": "True" if ready and all_ready and phase == "Running" else "False"}
        for kind in ("Ready", "ContainersReady")
    ]
    if disruption:
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": disruption})
    if unschedulable:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": why, "message": unschedulable})
    return {
        "metadata": meta,
        "spec": {
            "nodeName": "" if unschedulable else node,
            "containers": [{"name": entry["name"], **_probe(entry)} for entry in (program, *others)],
            "initContainers": [
                *({"name": entry["name"]} for entry in initial),
                *({"name": entry["name"], "restartPolicy": "Always"} for entry in native),
            ],
        },
        "status": {
            "phase": phase, "reason": reason, "message": message, "conditions": conditions,
            "containerStatuses": [program, *others],
            "initContainerStatuses": [*initial, *native],
        },
    }  # fmt: skip


def _probe(status: dict[str, Any]) -> dict[str, Any]:
    """Only a container with a probe can run without being ready."""
    unready = "running" in status["state"] and not status.get("ready", True)
    return {"readinessProbe": {"exec": {"command": ["true"]}}} if unready else {}


def status(name: str, exit_code: int | None = None, *, waiting: str = "", ready: bool | None = None) -> dict[str, Any]:
    """The status of a container that runs, has ended with `exit_code`, or waits."""
    state: dict[str, Any] = {"running": {"startedAt": AT}}
    if exit_code is not None:
        state = {"terminated": {"exitCode": exit_code, "reason": "Error"}}
    elif waiting:
        state = {"waiting": {"reason": waiting}}
    return {"name": name, "state": state, "ready": "running" in state if ready is None else ready}


def pod(name: str = "w-0", **more: Any) -> PodRecord:
    return PodRecord.of(pod_object(name, **more))


def member(index: int, *, restart: int = 0, generation: str = "", **more: Any) -> PodRecord:
    """A pod of a JobSet with one replicated job."""
    labels = {
        REPLICATED_JOB: "workers", JOB_INDEX: "0", COMPLETION_INDEX: str(index), RESTART_ATTEMPT: str(restart),
    }  # fmt: skip
    return pod(f"workers-0-{index}-{restart}{generation}", labels=labels, **more)


def node(
    name: str = "node-1",
    *,
    ready: str = "True",
    message: str = "",
    reason: str = "KubeletNotReady",
    taints: tuple[str, ...] = (),
    condition: tuple[str, str] | None = None,
    cordoned: bool = False,
    deleted: bool = False,
    labels: dict[str, str] | None = None,
) -> NodeRecord:
    meta: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", "labels": labels or {}}
    if deleted:
        meta["deletionTimestamp"] = AT
    conditions = [{"type": "Ready", "status": ready, "reason": reason, "message": message}]
    if condition:
        conditions.append({"type": condition[0], "status": "True", "message": condition[1]})
    return NodeRecord.of(
        {
            "metadata": meta,
            "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints], "unschedulable": cordoned},
            "status": {"conditions": conditions},
        }
    )


NODES = {"node-1": node()}


def rayjob(
    deployment: str = "Running", job: str = "RUNNING", reason: str = "", message: str = "", **meta: Any
) -> RayJobRecord:
    status = {
        "jobDeploymentStatus": deployment, "jobStatus": job, "reason": reason, "message": message,
        "rayClusterName": "digits-a001-xk2lp",
    }  # fmt: skip
    return RayJobRecord.of({"metadata": metadata("digits-a001", **meta), "status": status})


def raycluster(failure: str = "", *, deleting: bool = False, acted_on: bool = True) -> RayClusterRecord:
    condition = {"type": "ReplicaFailure", "status": "True" if failure else "False", "message": failure}
    meta = metadata("digits-a001-xk2lp", **({"deletionTimestamp": AT} if deleting else {}))
    return RayClusterRecord.of({"metadata": meta, "status": {"conditions": [condition]} if acted_on else {}})


def jobset(
    ended: str = "", *, restarts: int = 0, suspended: bool = False, pods: int = 2, message: str = "", **meta: Any
) -> JobSetRecord:
    conditions = [{"type": ended, "status": "True", "message": message}] if ended else []
    return JobSetRecord.of(
        {
            "metadata": metadata("digits-a001", **meta),
            "spec": {
                "suspend": suspended,
                "replicatedJobs": [{"name": "workers", "template": {"spec": {"parallelism": pods}}}],
            },
            "status": {"restarts": restarts, "conditions": conditions},
        }
    )


def event(
    reason: str, message: str = "", *, about: str = "uid-w-0", kind: str = "Pod", name: str = "w-0",
    source: str = "karpenter", at: str = AT, version: str = "7",
) -> EventRecord:  # fmt: skip
    return EventRecord.of(
        {
            "metadata": {"name": f"{name}.{at}", "namespace": "default", "uid": "e", "resourceVersion": version},
            "involvedObject": {"kind": kind, "name": name, "uid": about},
            "reason": reason, "message": message, "source": {"component": source}, "lastTimestamp": at,
        }
    )  # fmt: skip


# --- jobs and tiers --------------------------------------------------------------------------------------------------


def ray_template() -> dict[str, Any]:
    container = {"image": IMAGE, "resources": {"limits": {"cpu": "1", "memory": "2Gi"}}}
    return {
        "spec": {
            "entrypoint": "python train.py",
            "rayClusterSpec": {
                "rayVersion": "2.58.1",
                "headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head", **container}]}}},
                "workerGroupSpecs": [
                    {
                        "groupName": "workers",
                        "replicas": 2,
                        "template": {"spec": {"containers": [{"name": "ray-worker", **container}]}},
                    }
                ],
            },
        }
    }


def jobset_template() -> dict[str, Any]:
    container = {"name": "train", "image": "example.org/train:1", "command": ["python", "train.py"]}
    return {
        "spec": {
            "replicatedJobs": [
                {
                    "name": "workers",
                    "template": {"spec": {"parallelism": 2, "template": {"spec": {"containers": [container]}}}},
                }
            ]
        }
    }


def worker_spec(template: dict[str, Any]) -> dict[str, Any]:
    """The pod spec of the first worker group or replicated job of a template."""
    spec = template["spec"]
    if "rayClusterSpec" in spec:
        return spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]["spec"]  # type: ignore[no-any-return]
    return spec["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]  # type: ignore[no-any-return]


def job(
    template: dict[str, Any] | None = None, *, name: str = "digits", tier: dict[str, Any] | None = None, **spec: Any
) -> TieredJob:
    template = template or ray_template()
    workload = {"ray" if "rayClusterSpec" in template["spec"] else "jobSet": {"template": template}}
    data = {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "TieredJob",
        "metadata": {"name": name, "namespace": "team-a", "uid": "1b4e28ba"},
        "spec": {
            "tiers": [{"name": "spot-a", "capacityTier": "pool", "maxFailures": 3, **(tier or {})}],
            "checkpoints": {"uri": "s3://bucket/prefix", "interval": "50steps"},
            "workload": workload,
            **spec,
        },
    }
    return checked(Document("job.yaml", data, {}, {}), TieredJob)


def capacity(**spec: Any) -> CapacityTier:
    data = {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "CapacityTier",
        "metadata": {"name": "pool"},
        "spec": spec,
    }
    return checked(Document("tier.yaml", data, {}, {}), CapacityTier)


def tier(of: TieredJob, **spec: Any) -> PlacedTier:
    return resolve_tiers(of, {"pool": capacity(**spec)})[0]
