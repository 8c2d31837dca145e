"""What a RayJob, its cluster and its pods say about an attempt.

KubeRay's words are taken for what they were seen to mean, not for what they are called:

 1. `ready` and Provisioned stick after the first readiness: whether all workers are there is seen from the pods.
 2. Success is Complete *and* SUCCEEDED; STOPPED is Complete too, and is somebody's doing.
 3. `jobStatus` may hold words that are no status ("Failure", when the head cannot be asked): they mean nothing.
 4. A RayCluster that is deleted under a running program is one loss, not one of each of its pods.
 5. A failure is the program's own only when Ray knows its exit code, and that is none of a signal's. What KubeRay gives
    up on may still train somewhere: it is lost, and the next attempt fences it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from spotladder.core.model import AttemptSeen, Exit
from spotladder.workloads import capacity
from spotladder.workloads.exits import exit_of_code
from spotladder.workloads.kueue import queue_seen
from spotladder.workloads.pod_observation import pods_seen
from spotladder.workloads.rayjob.records import LOGS, RayClusterRecord, RayJobRecord, rayclusters_of, rayjob_of
from spotladder.workloads.records import EventRecord, NodeRecord
from spotladder.workloads.workload import AttemptObjects

REASONS: Mapping[str, Exit] = MappingProxyType(
    {
        "SubmissionFailed": Exit.LOST,
        "DeadlineExceeded": Exit.FAILED,  # the template's own activeDeadlineSeconds
        "PreRunningDeadlineExceeded": Exit.LOST,
        "JobDeploymentStatusTransitionGracePeriodExceeded": Exit.LOST,
        "JobStatusCheckTimeoutExceeded": Exit.LOST,
    }
)
"""`status.reason` of a failed RayJob. AppFailed is told by its message."""

_CODE = re.compile(r"failed with exit code (-?\d+)")
_BAD_ENVIRONMENT = "runtime_env setup failed"
_SIDECAR_ENDED = "ray-job-submitter terminated with exit code"
"""SidecarMode: the submitter ended with an error as its program did, before KubeRay had asked how."""


def read(
    attempt: int, objects: AttemptObjects, nodes: Mapping[str, NodeRecord], events: Sequence[EventRecord] = ()
) -> AttemptSeen:
    """The attempt as it is now."""
    rayjob = rayjob_of(objects)
    ended, message = (
        (Exit.LOST, "its RayJob is gone") if rayjob is None else _exit(rayjob, managed=objects.admission is not None)
    )
    if rayjob is not None and ended is None and _cluster_deleted(rayjob, rayclusters_of(objects)):
        ended, message = Exit.LOST, f"somebody deleted its RayCluster {rayjob.cluster}"
    blocked = ""
    if rayjob is not None and ended is None and not rayjob.suspended:
        blocked = rayjob.message if _invalid(rayjob) else _blocked(objects, rayjob.name, events)
    return AttemptSeen(
        number=attempt,
        pods=tuple(pods_seen(objects.pods, nodes, events)),
        exit=ended,
        message=message,
        refused=capacity.refused(objects.pods, events),
        blocked=blocked,
        blocked_by=capacity.blocker(blocked),
        queue=queue_seen(rayjob, objects.admission, events),
    )


def _exit(rayjob: RayJobRecord, *, managed: bool) -> tuple[Exit | None, str]:
    state = rayjob.deployment_status
    if state == "Complete" and rayjob.job_status == "SUCCEEDED":
        return Exit.SUCCEEDED, ""
    if rayjob.deleting:
        return Exit.LOST, "its RayJob is being deleted"
    if rayjob.suspended or ((rayjob.queue or managed) and state in ("Suspending", "Suspended")):
        return None, ""  # `queue` says who holds it
    if state in ("Suspending", "Suspended"):
        return Exit.LOST, "its RayJob was suspended by somebody else; use spec.suspend of the TieredJob"
    if state == "Complete" and rayjob.job_status == "STOPPED":
        return Exit.LOST, "its program was stopped through Ray by somebody else"
    if state not in ("Complete", "Failed") or _invalid(rayjob):
        return None, ""
    message = _without_logs(rayjob.message) or f"{state}, {rayjob.job_status or 'no job status'}"
    if rayjob.error:
        message = f"{message}: {rayjob.error}"
    if _SIDECAR_ENDED in rayjob.message:
        return Exit.FAILED, message
    return REASONS.get(rayjob.reason) or exit_of(rayjob.message), message


def _cluster_deleted(rayjob: RayJobRecord, clusters: Sequence[RayClusterRecord]) -> bool:
    """Whether the RayCluster of a running program was deleted: one event that takes the head and all workers."""
    if rayjob.deployment_status != "Running" or not rayjob.cluster:
        return False
    found = next((cluster for cluster in clusters if cluster.name == rayjob.cluster), None)
    return found is None or found.deleting


def exit_of(message: str) -> Exit:
    """How a program ended, from what Ray says of it."""
    if found := _CODE.search(message):
        return exit_of_code(int(found[1]))
    return Exit.FAILED if _BAD_ENVIRONMENT in message else Exit.LOST


def begun(objects: AttemptObjects) -> bool:
    """Whether KubeRay has taken the RayJob up. What it calls invalid, or has not looked at, is nothing but a wish."""
    rayjob = rayjob_of(objects)
    return (
        rayjob is None
        or rayjob.suspended
        or not (_invalid(rayjob) or (not rayjob.deployment_status and not objects.pods))
    )


def refusal(objects: AttemptObjects) -> str:
    """Why KubeRay will never run this RayJob, "" when it may: that state is never left, also not when it is edited."""
    rayjob = rayjob_of(objects)
    return (rayjob.message or "ValidationFailed") if rayjob and _invalid(rayjob) else ""


def _invalid(rayjob: RayJobRecord) -> bool:
    return "ValidationFailed" in (rayjob.deployment_status, rayjob.reason)


def _blocked(objects: AttemptObjects, name: str, events: Sequence[EventRecord]) -> str:
    # KubeRay says itself, on the RayCluster, which pods it could not create: no number of pods is needed here.
    failures = (cluster.failure for cluster in rayclusters_of(objects))
    return capacity.blocked(objects.pods, failures, events, name, wanted=0)


def _without_logs(message: str) -> str:
    return message.partition(LOGS)[0].strip().partition("\n")[0]
