"""Reads the state of an attempt from its RayJob, its cluster and its pods.

KubeRay's status values are interpreted by their observed meaning, not by their names:

 1. `ready` and Provisioned stay set after the first readiness, so the pods show whether all workers are ready.
 2. Success is Complete *and* SUCCEEDED. STOPPED is Complete too, but a client stopped the job.
 3. `jobStatus` may have values that are not a status ("Failure", if the head does not answer); they are ignored.
 4. The deletion of a RayCluster with a running program is one loss, not one for each of its pods.
 5. KubeRay submits the program when all pods of the RayCluster are ready for the first time. From then on an elastic
    program may train with fewer workers. Before that, workers without a node can be left out (`surge.resizing`).
 6. A failure is the program's own only if Ray knows its exit code and no signal caused it. A job that KubeRay gives up
    may still train: it counts as lost, and the next attempt fences it.
 7. A head that trains, because no worker group is on the tier, is the attempt's only worker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from spotladder.core.model import AttemptSeen, Exit, PodPhase, PodRole, PodSeen
from spotladder.core.reasons import Cause
from spotladder.workloads import pending_pods
from spotladder.workloads.exits import exit_of_code
from spotladder.workloads.kueue import queue_seen
from spotladder.workloads.pod_observation import pods_seen
from spotladder.workloads.rayjob.records import (
    LOGS,
    SETTING_UP,
    SUBMITTER,
    RayClusterRecord,
    RayJobRecord,
    rayclusters_of,
    rayjob_of,
)
from spotladder.workloads.rayjob.surge import surplus
from spotladder.workloads.records import EventRecord, NodeRecord, PodRecord
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
"""`status.reason` of a failed RayJob. For AppFailed, the message decides."""

_NEVER_READY = (
    "KubeRay submits the program when all containers of every pod are ready: make it an init container with "
    "restartPolicy: Always"
)

_CODE = re.compile(r"failed with exit code (-?\d+)")
_NOT_STARTED = ("runtime_env setup failed", "Job supervisor actor failed to start within")
"""Ray could not start the driver: a package does not exist, or no node has the resources of the entrypoint."""

_SIDECAR_ENDED = "ray-job-submitter terminated with exit code"
"""SidecarMode: the submitter ended with an error like its program, before KubeRay had read the exit code."""


def read(
    attempt: int, objects: AttemptObjects, nodes: Mapping[str, NodeRecord], events: Sequence[EventRecord] = ()
) -> AttemptSeen:
    """The current state of the attempt."""
    rayjob = rayjob_of(objects)
    ended, message = (
        (Exit.LOST, "its RayJob is gone") if rayjob is None else _exit(rayjob, managed=objects.admission is not None)
    )
    if rayjob is not None and ended is None and _cluster_deleted(rayjob, rayclusters_of(objects)):
        ended, message = Exit.LOST, f"its RayCluster {rayjob.cluster} was deleted"
    pods, blocked = pods_seen(objects.pods, nodes, events), pending_pods.Blocked()
    waits = rayjob is not None and rayjob.deployment_status in SETTING_UP
    if waits and ended is None:
        ended, message = _submitted_early(objects.pods)
    if rayjob is not None and ended is None and not rayjob.suspended:
        invalid = _invalid(rayjob)
        blocked = (
            pending_pods.refusal(rayjob.message)
            if invalid
            else _blocked(objects, rayjob.name, events, submitted=not waits)
        )
    if waits and not any(cluster.was_ready for cluster in rayclusters_of(objects)):
        pods = [_before_submission(pod, what) for pod, what in zip(objects.pods, pods, strict=True)]
    return AttemptSeen(
        number=attempt,
        pods=tuple(_in_their_roles(objects, pods)),
        exit=ended,
        message=message,
        provisioning=pending_pods.provisioning(objects.pods, events),
        blocked=blocked.message,
        blocked_by=blocked.by,
        queue=queue_seen(rayjob, objects.admission),
        surplus=surplus(objects) if ended is None else None,
        waits_for_all_workers=waits,
        reported_running=rayjob is not None and rayjob.job_status == "RUNNING",
    )


def _submitted_early(pods: Sequence[PodRecord]) -> tuple[Exit | None, str]:
    """How the program ended if it did so before all pods were ready. In SidecarMode its submitter starts with the head.
    KubeRay reads its end only when all containers are ready, and one that has ended never is."""
    heads = (pod for pod in pods if pod.role is PodRole.HEAD and not pod.deleting and pod.phase == "Running")
    submitters = (entry for pod in heads for entry in pod.other_containers if entry.name == SUBMITTER)
    for entry in submitters:
        if entry.exit_code is not None:
            what = f"{SUBMITTER} ended with exit code {entry.exit_code} before all pods were ready"
            return exit_of_code(entry.exit_code), ": ".join(filter(None, (what, entry.error)))
    return None, ""


def _before_submission(pod: PodRecord, what: PodSeen) -> PodSeen:
    """The pod while KubeRay waits until all containers of every pod are ready, and only then submits the program. A
    container that has ended is never ready again."""
    if what.phase is not PodPhase.RUNNING or pod.ready:
        return what
    others = [entry for entry in pod.other_containers if entry.name != SUBMITTER and not entry.restarted]
    ended = next((entry for entry in others if entry.exit_code is not None), None)
    if ended is not None and not pod.deleting:
        return replace(
            what,
            phase=PodPhase.LOST,
            ready=False,
            cause=Cause.APP_ERROR,
            exit_code=ended.exit_code,
            exit_message=": ".join(filter(None, (ended.error, _NEVER_READY))),
            container=ended.name,
        )
    unready = next((entry for entry in others if not entry.ready), None)
    return replace(what, ready=False, container=unready.name if what.ready and unready else what.container)


def _in_their_roles(objects: AttemptObjects, pods: Sequence[PodSeen]) -> Iterator[PodSeen]:
    """The pods, with a head that trains as a worker. KubeRay replaces auxiliary pods, so their notices are no reason
    to commit or to move, and those that Ray's autoscaler removes are not lost."""
    rayjob = rayjob_of(objects)
    trains = rayjob is not None and rayjob.head_on_tier
    autoscaled = any(cluster.autoscaled for cluster in rayclusters_of(objects))
    for pod in pods:
        if pod.role is PodRole.HEAD and trains:
            yield replace(pod, role=PodRole.WORKER)
        elif pod.role is not PodRole.AUXILIARY:
            yield pod
        elif not (autoscaled and pod.phase is PodPhase.LOST and pod.cause is Cause.DELETED):
            yield replace(pod, noticed=False, noticed_at=None, notice_ends_at=None, suspect=False)


def _exit(rayjob: RayJobRecord, *, managed: bool) -> tuple[Exit | None, str]:
    state = rayjob.deployment_status
    if state == "Complete" and rayjob.job_status == "SUCCEEDED":
        return Exit.SUCCEEDED, ""
    if rayjob.deleting:
        return Exit.LOST, "its RayJob is being deleted"
    if rayjob.suspended or ((rayjob.queue or managed) and state in ("Suspending", "Suspended")):
        return None, ""  # `queue` says which queue holds it.
    if state in ("Suspending", "Suspended"):
        return Exit.LOST, "its RayJob was suspended by another client; use spec.suspend of the TieredJob"
    if state == "Complete" and rayjob.job_status == "STOPPED":
        return Exit.LOST, "its program was stopped through Ray by another client"
    if state not in ("Complete", "Failed") or _invalid(rayjob):
        return None, ""
    message = _without_logs(rayjob.message) or f"{state}, {rayjob.job_status or 'no job status'}"
    if rayjob.error:
        message = f"{message}: {rayjob.error}"
    if _SIDECAR_ENDED in rayjob.message:
        return Exit.FAILED, message
    return REASONS.get(rayjob.reason) or exit_of(rayjob.message), message


def _cluster_deleted(rayjob: RayJobRecord, clusters: Sequence[RayClusterRecord]) -> bool:
    """Whether the RayCluster of a running program was deleted: one event that removes the head and all workers."""
    if rayjob.deployment_status != "Running" or not rayjob.cluster:
        return False
    found = next((cluster for cluster in clusters if cluster.name == rayjob.cluster), None)
    return found is None or found.deleting


def exit_of(message: str) -> Exit:
    """How a program ended, according to Ray."""
    if found := _CODE.search(message):
        return exit_of_code(int(found[1]))
    return Exit.FAILED if any(words in message for words in _NOT_STARTED) else Exit.LOST


def begun(objects: AttemptObjects) -> bool:
    """Whether KubeRay has accepted the RayJob. It has not if the RayJob is invalid or if KubeRay has not
    observed it."""
    rayjob = rayjob_of(objects)
    return (
        rayjob is None
        or rayjob.suspended
        or not (_invalid(rayjob) or (not rayjob.deployment_status and not objects.pods))
    )


def refusal(objects: AttemptObjects) -> str:
    """Why KubeRay will never run this RayJob, "" if it may. KubeRay never leaves that state, not even after an edit."""
    rayjob = rayjob_of(objects)
    return (rayjob.message or "ValidationFailed") if rayjob and _invalid(rayjob) else ""


def _invalid(rayjob: RayJobRecord) -> bool:
    return "ValidationFailed" in (rayjob.deployment_status, rayjob.reason)


def _blocked(
    objects: AttemptObjects, name: str, events: Sequence[EventRecord], *, submitted: bool
) -> pending_pods.Blocked:
    # KubeRay reports on the RayCluster which pods it could not create, so the number of pods is not needed here.
    failures = (cluster.failure for cluster in rayclusters_of(objects))
    waiting = [pod for pod in objects.pods if not pod.program_runs] if submitted else objects.pods
    return pending_pods.blocked(waiting, failures, events, name, wanted=0)


def _without_logs(message: str) -> str:
    return message.partition(LOGS)[0].strip().partition("\n")[0]
