"""The cached records of a RayJob and of its RayCluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from sys import intern
from typing import ClassVar, Self

from spotladder.core.model import Instant, PodRole
from spotladder.output.last_error import last_error
from spotladder.resources import APIResource
from spotladder.timestamps import instant
from spotladder.workloads import names
from spotladder.workloads.records import (
    Made,
    Object,
    WorkloadRecord,
    conditions_of,
    launched_fields,
    made_fields,
    message_of,
    part,
    role_in,
    whole_number,
)
from spotladder.workloads.workload import AttemptObjects

RAYJOBS = APIResource("ray.io", "v1", "rayjobs", "RayJob")
RAYCLUSTERS = APIResource("ray.io", "v1", "rayclusters", "RayCluster")

SETTING_UP = ("", "Initializing")
"""`jobDeploymentStatus` of a RayJob before its RayCluster is ready."""

SUBMITTER = "ray-job-submitter"
"""KubeRay's container that submits the program and prints its output: in the head's pod (SidecarMode) or in its own
pod (K8sJobMode). HTTPMode has no such container."""


LOGS = ", last available logs"
"""Separates Ray's message about a failed driver from the last lines of the driver's output (10 in Ray 2.58)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJobRecord(WorkloadRecord):
    """A RayJob with the values that KubeRay uses. `error` is the error that ended its driver, taken from the log that
    Ray appends to its message; the log itself is not kept. `mode` is its submissionMode. `groups` are its worker groups
    on the tier, with their replicas. `head_on_tier`: it
    is the only worker (`names.HEAD_TRAINS`). `written_at` is the time of its last update."""

    kind: ClassVar[APIResource] = RAYJOBS

    deployment_status: str = ""
    job_status: str = ""
    reason: str = ""
    message: str = ""
    error: str = ""
    mode: str = ""
    cluster: str = ""
    groups: tuple[tuple[str, int], ...] = ()
    head_on_tier: bool = False
    written_at: Instant | None = field(default=None, compare=False)

    @classmethod
    def of(cls, rayjob: Object) -> Self:
        status = part(rayjob, "status")
        writes = (instant(entry.get("time")) for entry in rayjob["metadata"].get("managedFields") or ())
        printed = driver_log(status.get("message") or "")
        return cls(
            **made_fields(rayjob),
            **launched_fields(rayjob),
            suspended=bool(part(rayjob, "spec").get("suspend")),
            deployment_status=intern(status.get("jobDeploymentStatus") or ""),
            job_status=intern(status.get("jobStatus") or ""),
            reason=intern(status.get("reason") or ""),
            message=message_of(status),
            error=last_error(printed) if printed else "",
            mode=intern(part(rayjob, "spec").get("submissionMode") or ""),
            cluster=status.get("rayClusterName") or "",
            groups=tuple(
                (group.name, group.replicas)
                for group in _groups(part(part(rayjob, "spec"), "rayClusterSpec"))
                if not group.auxiliary
            ),
            program_at=instant(part(status, "rayJobInfo").get("startTime")),
            head_on_tier=names.HEAD_TRAINS in (rayjob["metadata"].get("annotations") or {}),
            written_at=max((time for time in writes if time is not None), default=None),
        )


@dataclass(frozen=True, slots=True)
class WorkerGroupRecord:
    """A worker group of a RayCluster. `least` is its minReplicas, `most` its maxReplicas, `hosts` the number of pods of
    each replica, `to_delete` its `workersToDelete`. `auxiliary`: it is not on the tier."""

    name: str
    replicas: int
    least: int
    most: int
    hosts: int
    to_delete: tuple[str, ...] = ()
    auxiliary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RayClusterRecord(Made):
    """A RayCluster. `failure` is why KubeRay could not create one of its pods; "" if there was no failure. `acted_on`:
    KubeRay has observed its current spec. `was_ready`: all of its pods have been ready together. `autoscaled`: Ray's
    autoscaler sets the number of its workers."""

    kind: ClassVar[APIResource] = RAYCLUSTERS

    failure: str = ""
    acted_on: bool = False
    was_ready: bool = False
    autoscaled: bool = False
    groups: tuple[WorkerGroupRecord, ...] = ()

    @classmethod
    def of(cls, cluster: Object) -> Self:
        conditions = conditions_of(part(cluster, "status"))
        failure = conditions.get("ReplicaFailure", {})
        return cls(
            **made_fields(cluster),
            failure=message_of(failure) if failure.get("status") == "True" else "",
            acted_on=_acted_on(cluster),
            was_ready=part(cluster, "status").get("state") == "ready",
            autoscaled=bool(part(cluster, "spec").get("enableInTreeAutoscaling")),
            groups=tuple(_groups(part(cluster, "spec"))),
        )


def _groups(cluster: Object) -> Iterator[WorkerGroupRecord]:
    for group in cluster.get("workerGroupSpecs") or ():
        replicas = whole_number(group.get("replicas"))
        yield WorkerGroupRecord(
            name=intern(group.get("groupName") or ""),
            replicas=replicas,
            least=whole_number(group.get("minReplicas")),
            most=whole_number(group.get("maxReplicas")) or replicas,
            hosts=whole_number(group.get("numOfHosts")) or 1,
            to_delete=tuple((group.get("scaleStrategy") or {}).get("workersToDelete") or ()),
            auxiliary=role_in(part(group, "template")) is PodRole.AUXILIARY,
        )


def driver_log(message: str) -> str:
    """The last line of the driver's output in the message of a RayJob or of Ray's job; "" if the message has no
    output."""
    _, found, rest = message.partition(LOGS)
    return rest.partition("\n")[2] if found else ""


def _acted_on(thing: Object) -> bool:
    """Whether its operator has written a status for the current spec."""
    status = part(thing, "status")
    return bool(status) and status.get("observedGeneration", 0) in (0, thing["metadata"].get("generation", 0))


def rayjob_of(objects: AttemptObjects) -> RayJobRecord | None:
    """The attempt's RayJob."""
    return objects.top if isinstance(objects.top, RayJobRecord) else None


def rayclusters_of(objects: AttemptObjects) -> tuple[RayClusterRecord, ...]:
    """The RayClusters that KubeRay has created for the attempt."""
    return tuple(record for record in objects.derived if isinstance(record, RayClusterRecord))
