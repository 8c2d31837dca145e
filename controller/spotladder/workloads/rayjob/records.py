"""What is kept of a RayJob and of its RayCluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from sys import intern
from typing import ClassVar, Self

from spotladder.core.model import Instant
from spotladder.output.last_error import last_error
from spotladder.resources import APIResource
from spotladder.workloads.records import (
    QUEUE,
    Made,
    Object,
    WorkloadRecord,
    conditions_of,
    digest_of,
    instant,
    labels_of,
    made_fields,
    message_of,
    part,
)
from spotladder.workloads.workload import AttemptObjects

RAYJOBS = APIResource("ray.io", "v1", "rayjobs", "RayJob")
RAYCLUSTERS = APIResource("ray.io", "v1", "rayclusters", "RayCluster")

SUBMITTER = "ray-job-submitter"
"""KubeRay's container that submits the program and prints what it prints: in the head's pod (SidecarMode) or in one of
its own (K8sJobMode). With HTTPMode there is none."""


LOGS = ", last available logs"
"""Between what Ray says of a driver that failed and the last lines (10 in Ray 2.58) that the driver printed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJobRecord(WorkloadRecord):
    """A RayJob, in KubeRay's own words. `error` is what ended its driver, from the log that Ray appends to its message;
    the log itself is not kept. `mode` is its submissionMode. `written_at` is when anyone wrote it last."""

    kind: ClassVar[APIResource] = RAYJOBS

    deployment_status: str = ""
    job_status: str = ""
    reason: str = ""
    message: str = ""
    error: str = ""
    mode: str = ""
    cluster: str = ""
    written_at: Instant | None = field(default=None, compare=False)

    @classmethod
    def of(cls, rayjob: Object) -> Self:
        status = part(rayjob, "status")
        writes = (instant(entry.get("time")) for entry in rayjob["metadata"].get("managedFields") or ())
        printed = driver_log(status.get("message") or "")
        return cls(
            **made_fields(rayjob),
            digest=digest_of(rayjob),
            queue=labels_of(rayjob).get(QUEUE, ""),
            suspended=bool(part(rayjob, "spec").get("suspend")),
            deployment_status=intern(status.get("jobDeploymentStatus") or ""),
            job_status=intern(status.get("jobStatus") or ""),
            reason=intern(status.get("reason") or ""),
            message=message_of(status),
            error=last_error(printed) if printed else "",
            mode=intern(part(rayjob, "spec").get("submissionMode") or ""),
            cluster=status.get("rayClusterName") or "",
            written_at=max((time for time in writes if time is not None), default=None),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RayClusterRecord(Made):
    """A RayCluster. `failure` is why KubeRay could not create a pod of it; "" when it could. `acted_on`: KubeRay has
    looked at its present spec."""

    kind: ClassVar[APIResource] = RAYCLUSTERS

    failure: str = ""
    acted_on: bool = False

    @classmethod
    def of(cls, cluster: Object) -> Self:
        conditions = conditions_of(part(cluster, "status"))
        failure = conditions.get("ReplicaFailure", {})
        return cls(
            **made_fields(cluster),
            failure=message_of(failure) if failure.get("status") == "True" else "",
            acted_on=_acted_on(cluster),
        )


def driver_log(message: str) -> str:
    """What the driver printed last, from the message of a RayJob or of Ray's job; "" when there is none in it."""
    _, found, rest = message.partition(LOGS)
    return rest.partition("\n")[2] if found else ""


def _acted_on(thing: Object) -> bool:
    """Whether its operator has written a status, and one of the present spec."""
    status = part(thing, "status")
    return bool(status) and status.get("observedGeneration", 0) in (0, thing["metadata"].get("generation", 0))


def rayjob_of(objects: AttemptObjects) -> RayJobRecord | None:
    """The attempt's RayJob."""
    return objects.top if isinstance(objects.top, RayJobRecord) else None


def rayclusters_of(objects: AttemptObjects) -> tuple[RayClusterRecord, ...]:
    """The RayClusters that KubeRay has created for the attempt."""
    return tuple(record for record in objects.derived if isinstance(record, RayClusterRecord))
