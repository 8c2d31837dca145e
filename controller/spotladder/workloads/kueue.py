"""Kueue: the queue of an attempt and the status of its Workload.

Kueue suspends a RayJob or a JobSet until its LocalQueue has quota, and reports the reason only on the Workload that it
creates for the object. With a default LocalQueue, or with `manageJobsWithoutQueueName`, this also applies to objects
without a label. The fields and texts are those of Kueue 0.19 (API v1beta2). Without access to Workloads, the reason is
unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import intern
from types import MappingProxyType
from typing import Self

from spotladder.core.model import QueueEviction, QueueSeen
from spotladder.resources import APIResource
from spotladder.workloads.provisioner_messages import REFUSALS, Meaning, Speaker, read
from spotladder.workloads.records import Object, WorkloadRecord, conditions_of, message_of, part

WORKLOADS = APIResource("kueue.x-k8s.io", "v1beta2", "workloads", "Workload")
LOCAL_QUEUES = APIResource("kueue.x-k8s.io", "v1beta2", "localqueues", "LocalQueue")

INADMISSIBLE = frozenset({"Inadmissible", "Misconfigured", "Suspended", "NoMatchingFlavor", "ExceedsMaxQuota"})
"""Reasons of the condition QuotaReserved when the queue does not exist, is stopped, or can never hold the attempt: one
for all of them before Kueue 0.20, one for each since then."""

EVICTIONS: Mapping[str, QueueEviction] = MappingProxyType(
    {
        "Preempted": QueueEviction.PREEMPTED,
        "PodsReadyTimeout": QueueEviction.PODS_READY_TIMEOUT,
        "Deactivated": QueueEviction.DEACTIVATED,
        "AdmissionCheck": QueueEviction.CHECK_FAILED,
    }
)
"""Reasons of the condition Evicted. All others are actions of an administrator (ClusterQueueStopped)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionRecord:
    """A Workload of Kueue. `pending` is the message of QuotaReserved while there is no quota, `inadmissible` whether
    its reason means that Kueue cannot admit it. `evicted`: it is evicted and not admitted again. `evicted_by` is the
    reason of the newest eviction, "" if there was none, and `eviction` its message, which Kueue removes when it admits
    the object again. `check` is what the first admission check that is not ready says; a provisioning check repeats its
    provisioner."""

    name: str
    namespace: str
    uid: str
    resource_version: str = field(default="", compare=False)
    owner_kind: str = ""
    owner_name: str = ""
    owner_uid: str = ""
    queue: str = ""
    pending: str = ""
    inadmissible: bool = False
    evicted: bool = False
    evicted_by: str = ""
    eviction: str = ""
    check: str = ""

    @classmethod
    def of(cls, thing: Object) -> Self:
        metadata, status = thing["metadata"], part(thing, "status")
        owner: Object = next((entry for entry in metadata.get("ownerReferences") or () if entry.get("controller")), {})
        conditions = conditions_of(status)
        quota, evicted = conditions.get("QuotaReserved", {}), conditions.get("Evicted", {})
        waits = quota.get("status") == "False"
        now = evicted.get("status") == "True"
        return cls(
            name=metadata["name"],
            namespace=intern(metadata.get("namespace", "")),
            uid=metadata.get("uid", ""),
            resource_version=metadata.get("resourceVersion", ""),
            owner_kind=intern(owner.get("kind") or ""),
            owner_name=owner.get("name") or "",
            owner_uid=owner.get("uid") or "",
            queue=intern(part(thing, "spec").get("queueName") or ""),
            pending=message_of(quota) if waits else "",
            inadmissible=waits and quota.get("reason") in INADMISSIBLE,
            evicted=now,
            evicted_by=intern((evicted.get("reason") or "Evicted") if now else _counted(status)),
            eviction=message_of(evicted) if now else "",
            check=_check(status),
        )


def queue_seen(top: WorkloadRecord | None, workload: AdmissionRecord | None) -> QueueSeen | None:
    """The attempt's queue as Kueue reports it; None if it is in no queue. A user or another controller has suspended
    an object that is suspended without a queue."""
    if top is None:
        return None
    if workload is None:
        if not top.suspended:
            return QueueSeen(top.queue) if top.queue else None
        if top.queue:
            return QueueSeen(top.queue, held=True, message=f"Kueue holds the attempt in queue {top.queue}")
        message = f"its {top.kind.kind} was suspended by another client; use spec.suspend of the TieredJob"
        return QueueSeen(held=True, message=message, eviction=QueueEviction.SUSPENDED)
    queue = top.queue or workload.queue
    eviction = None if not workload.evicted_by else _eviction(workload.evicted_by)
    failed = eviction is QueueEviction.CHECK_FAILED
    reason = workload.eviction if eviction is not None and not failed else workload.pending
    reason = "; ".join(filter(None, (reason, workload.check, workload.eviction if failed else "")))
    message = ""
    if eviction is not None and not failed:
        message = f"Kueue evicted the attempt from queue {queue} ({workload.evicted_by})"
    elif top.suspended:
        message = f"Kueue holds the attempt in queue {queue}"
    if message and reason:
        message = f"{message}: {reason}"
    # Kueue suspends the object after it has written the condition; a deactivation then holds it until it is activated.
    paused = eviction is QueueEviction.DEACTIVATED and workload.evicted
    held = top.suspended or paused
    row = read(Speaker.CHECK, workload.check)
    refused = held and (failed or (row is not None and (row.means in REFUSALS or row.means is Meaning.MISFIT)))
    return QueueSeen(queue, held, message, workload.inadmissible, eviction, refused=refused)


def _eviction(reason: str) -> QueueEviction:
    for word, eviction in EVICTIONS.items():
        if reason.startswith(word):
            return eviction
    return QueueEviction.STOPPED


def _check(status: Object) -> str:
    checks = [entry for entry in status.get("admissionChecks") or () if entry.get("state") != "Ready"]
    found = ((entry.get("name") or "", message_of(entry)) for entry in checks)
    return next((f"admission check {name}: {message}" for name, message in found if message), "")


def _counted(status: Object) -> str:
    """The reason of an earlier eviction; a preemption if there was one."""
    reasons = [entry.get("reason") or "" for entry in part(status, "schedulingStats").get("evictions") or ()]
    return "Preempted" if "Preempted" in reasons else next(iter(reasons), "")
