"""Reads the state of an attempt from its JobSet and its pods.

When a pod is lost, JobSet deletes all others and creates the whole set again. So a pod that is gone was not always
lost, and the core gets

1. the *places* of the set ("workers-0-3"), each running or pending: they stay the same while pods are replaced, so
   that replaced pods do not count as lost;
2. the losses: every pod that was observed to be lost, and one for each restart that JobSet counts without such a pod
   (see `core.losses`). A pod with a notice has the identity that its loss will have, so that both are one failure.

The end of a program is read from its exit code: JobSet's status follows a few seconds later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spotladder.core.model import AttemptSeen, Exit, PodPhase, PodRole, PodSeen
from spotladder.core.reasons import Cause
from spotladder.workloads import pending_pods
from spotladder.workloads.containers import ContainerRecord
from spotladder.workloads.exits import exit_of_code
from spotladder.workloads.jobset.records import JobSetRecord, jobset_of
from spotladder.workloads.kueue import queue_seen
from spotladder.workloads.pod_observation import pods_seen
from spotladder.workloads.records import EventRecord, NodeRecord, PodRecord
from spotladder.workloads.workload import AttemptObjects

KEPT_RESTARTS = 64
"""Maximum number of a set's restarts that are reported; the core has already counted the older ones."""

_WEIGHT = (Exit.FENCED, Exit.INTERRUPTED, Exit.UNSAFE, Exit.REFUSED, Exit.FAILED)


def read(
    attempt: int, objects: AttemptObjects, nodes: Mapping[str, NodeRecord], events: Sequence[EventRecord] = ()
) -> AttemptSeen:
    """The current state of the attempt."""
    jobset = jobset_of(objects)
    if jobset is None:
        return AttemptSeen(attempt, tuple(pods_seen(objects.pods, nodes, events)), Exit.LOST, "its JobSet is gone")
    seen = [
        (pod, _done(what) if _is_done(pod) else what)
        for pod, what in zip(objects.pods, pods_seen(objects.pods, nodes, events), strict=True)
    ]
    ended, message = _exit(jobset, objects.pods)
    places = _places(jobset, seen)
    waiting = [pod for pod in objects.pods if not pod.program_runs]
    wanted = len(places) - len(objects.pods) + len(waiting)
    blocked = (
        pending_pods.Blocked()
        if ended or jobset.suspended
        else pending_pods.blocked(waiting, (), events, jobset.name, wanted=wanted)
    )
    return AttemptSeen(
        number=attempt,
        pods=(*places, *_losses(jobset, seen, ended)),
        exit=ended,
        message=message,
        provisioning=pending_pods.provisioning(objects.pods, events),
        blocked=blocked.message,
        blocked_by=blocked.by,
        queue=queue_seen(jobset, objects.admission),
    )


def begun(objects: AttemptObjects) -> bool:
    """Whether JobSet's controller, or Kueue, has acted on the JobSet."""
    jobset = jobset_of(objects)
    return jobset is None or jobset.acted_on or jobset.suspended or bool(objects.pods)


def _is_done(pod: PodRecord) -> bool:
    """Whether its program has ended well. The kubelet reports the phase Succeeded up to seconds later, and not at all
    while another container runs or after one has failed."""
    program = pod.program_container
    undisturbed = pod.phase != "Pending" and not (pod.deleting or pod.disruption or pod.reason)
    return pod.phase == "Succeeded" or (program is not None and program.exit_code == 0 and undisturbed)


def _done(what: PodSeen) -> PodSeen:
    """A pod that has finished its part while others still run: it counts as running."""
    return replace(what, phase=PodPhase.RUNNING, ready=True, cause=Cause.UNKNOWN)


def _exit(jobset: JobSetRecord, pods: Sequence[PodRecord]) -> tuple[Exit | None, str]:
    if jobset.state == "Completed" or _finished(jobset, pods):
        return Exit.SUCCEEDED, ""
    found = {
        ended: _ended(pod, container)
        for pod in pods
        if pod.restart == jobset.restarts
        for container in pod.own_containers
        if container.exit_code and (ended := exit_of_code(container.exit_code)) is not Exit.LOST
    }
    for ended in _WEIGHT:
        if ended in found:
            return ended, found[ended]
    if jobset.deleting:
        return Exit.LOST, "its JobSet is being deleted"
    return (Exit.LOST, jobset.message or "its JobSet failed") if jobset.state == "Failed" else (None, "")


def _finished(jobset: JobSetRecord, pods: Sequence[PodRecord]) -> bool:
    """Whether all programs whose end ends the set have ended. JobSet reports this later, and not at all while other
    containers run."""
    done = {pod.slot for pod in pods if pod.restart == jobset.restarts and _is_done(pod)}
    met = [
        all(f"{name}-{job}-{index}" in done for index in range(pods_of_job))
        for name, replicas, pods_of_job in jobset.ends_with
        for job in range(replicas)
    ]
    return bool(met) and (any(met) if jobset.ends_with_any else all(met))


def _ended(pod: PodRecord, container: ContainerRecord) -> str:
    where = ", container ".join(filter(None, (pod.name, pod.named(container))))
    return ": ".join(filter(None, (where, f"exit code {container.exit_code}", container.error)))


def _places(jobset: JobSetRecord, seen: Sequence[tuple[PodRecord, PodSeen]]) -> list[PodSeen]:
    taken: dict[str, PodSeen] = {}
    for pod, what in sorted(seen, key=lambda pair: (pair[0].restart, pair[1].phase is PodPhase.RUNNING)):
        if what.phase is not PodPhase.LOST:
            taken[pod.slot] = replace(what, uid=pod.slot, noticed=False, notice_ends_at=None)
        elif what.silent:  # This loss is counted with the losses; until then, its place is only silent.
            taken[pod.slot] = replace(what, uid=pod.slot, phase=PodPhase.RUNNING, ready=False)
    places = []
    for name, jobs, pods in jobset.places:
        slots = [f"{name}-{job}-{index}" for job in range(jobs) for index in range(pods)]
        role = PodRole.AUXILIARY if name in jobset.auxiliary else PodRole.WORKER
        # JobSet has created none of the pods yet: they lack no capacity.
        held = name in jobset.later and taken.keys().isdisjoint(slots)
        missing = PodSeen("", role, PodPhase.PENDING, ready=False, scheduled=held, image_pulled=held)
        places += [taken.get(slot) or replace(missing, uid=slot) for slot in slots]
    return places


def _losses(jobset: JobSetRecord, seen: Sequence[tuple[PodRecord, PodSeen]], ended: Exit | None) -> list[PodSeen]:
    going: dict[int, list[PodSeen]] = defaultdict(list)
    for pod, what in seen:
        # The pod was deleted without evidence of a loss: JobSet replaces it because of another pod. JobSet does not
        # replace a set whose programs have committed and stopped: then another client has deleted the pod.
        stopped = ended is Exit.INTERRUPTED and pod.restart == jobset.restarts
        replaced = pod.deleting and what.cause in (Cause.UNKNOWN, Cause.DELETED) and not stopped
        if what.noticed or (what.phase is PodPhase.LOST and not replaced):
            # The pod of this index runs and is observed by itself: this entry only names the loss.
            phase = PodPhase.PENDING if what.noticed else PodPhase.LOST
            going[pod.restart].append(replace(what, phase=phase, ready=False))
    losses = []
    for restart in range(max(0, jobset.restarts - KEPT_RESTARTS), jobset.restarts + 1):
        caused = f"{jobset.uid}/restart-{restart}"
        pods = sorted(going[restart], key=lambda pod: (pod.cause is Cause.UNKNOWN, pod.uid))
        losses += [replace(pod, uid=f"{caused}/{pod.uid}") for pod in pods]
        if not pods and restart < jobset.restarts:
            name = f"a pod of {jobset.name}, restart {restart + 1}"
            losses.append(PodSeen(caused, phase=PodPhase.LOST, ready=False, name=name))
    return losses
