"""Converts the records of a pod and its node to the decision core's observation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from spotladder.core.model import Instant, PodPhase, PodRole, PodSeen
from spotladder.core.reasons import Cause
from spotladder.workloads.causes import EVENTS, Sign, cause_of, node_sign, not_heard_of, scheduled_at, silent
from spotladder.workloads.containers import ContainerRecord
from spotladder.workloads.pending_pods import EXPLAINING, WAITING, WAITING_FOR_IMAGE, Misfit, misfits, refused, words
from spotladder.workloads.records import EventRecord, NodeRecord, PodRecord

_NOT_PULLED = WAITING_FOR_IMAGE | {"ContainerCreating"}
_FAILING = WAITING | {"CrashLoopBackOff"}


def pods_seen(
    pods: Sequence[PodRecord], nodes: Mapping[str, NodeRecord], events: Sequence[EventRecord]
) -> list[PodSeen]:
    """The current pods. `events` may be all events of a cluster; irrelevant ones are filtered once."""
    telling = [event for event in events if event.reason in EVENTS or event.reason in EXPLAINING]
    found = [pod_seen(pod, nodes, telling) for pod in pods]
    none, misfit = refused(pods, events), misfits(pods, events)
    if not (none or misfit):
        return found
    return [_without_node(seen, seen.uid in none, misfit.get(seen.uid)) for seen in found]


def _without_node(seen: PodSeen, refused: bool, misfit: Misfit | None) -> PodSeen:
    if misfit is None:
        return replace(seen, refused=refused)
    return replace(seen, refused=refused, misfit=misfit.message, misfit_lasts=misfit.lasts)


def pod_seen(pod: PodRecord, nodes: Mapping[str, NodeRecord], events: Sequence[EventRecord]) -> PodSeen:
    """The current state of the pod.

    A pod is lost if its node is silent or gone, whatever its own status is, if its program has ended, or if it is
    being deleted. A pod that is being evicted and still runs is not lost yet: its node's end is announced, and it can
    commit during its grace period. The containers beside the program container do not matter: their end neither ends
    the pod's program, nor keeps it alive.
    """
    node = nodes.get(pod.node)
    about = _about(pod, node, events)
    sign = node_sign(node, about) if pod.node else None
    phase = _phase(pod, nodes, sign)
    cause = cause_of(pod, sign) if phase is PodPhase.LOST or sign is not None or pod.deleting else Cause.UNKNOWN
    if phase is PodPhase.LOST and pod.deleting and cause is Cause.UNKNOWN:
        cause = Cause.DELETED
    waiting = next((entry for entry in pod.containers if entry.waiting), None) if phase is PodPhase.PENDING else None
    ended = next((entry for entry in pod.own_containers if entry.exit_code), None)
    program = pod.program_container
    ready = phase is PodPhase.RUNNING and pod.program_ready
    unready = program if phase is PodPhase.RUNNING and program is not None and not program.ready else None
    named = ended if phase is PodPhase.LOST else unready
    going = phase is PodPhase.RUNNING and (pod.deleting or (sign is not None and sign.announces))
    return PodSeen(
        uid=pod.uid,
        role=pod.role,
        phase=phase,
        ready=ready,
        noticed=going,
        noticed_at=_noticed_at(node, about) if going else None,
        notice_ends_at=_ends_at(pod, node) if going else None,
        unschedulable=phase is PodPhase.PENDING and bool(pod.unschedulable),
        cause=cause,
        node=pod.node,
        name=pod.name,
        scheduled=bool(pod.node),
        image_pulled=_image_pulled(pod),
        waiting_message=(waiting.waiting_message if waiting else "") or words(pod, events),
        suspect=phase is PodPhase.RUNNING and node is not None and node.suspect,
        silent=phase is PodPhase.LOST and cause is Cause.NODE_LOST and not pod.deleting and not_heard_of(node),
        exit_code=ended.exit_code if ended else None,
        exit_message=ended.error if ended else ": ".join(filter(None, (pod.reason, pod.message))),
        container=pod.named(named) if named else "",
        unit=pod.unit,
        group=pod.group if pod.role is PodRole.AUXILIARY else "",
    )


def sidecar_failures(pods: Iterable[PodRecord]) -> list[str]:
    """The other containers that have failed beside a program that runs, for the user."""
    return [
        f"{pod.name}: container {entry.name} {_failure(entry)}; the program runs on"
        for pod in pods
        if pod.program_runs and not pod.deleting
        for entry in pod.other_containers
        if entry.exit_code or entry.waiting in _FAILING
    ]


def _failure(container: ContainerRecord) -> str:
    if container.waiting:
        return f"does not run ({container.waiting})"
    error = f": {container.error}" if container.error else ""
    return f"ended with exit code {container.exit_code}{error}"


def _image_pulled(pod: PodRecord) -> bool:
    """Whether the kubelet has the images of the first containers. It has them once it has started one of
    these containers, because it pulls the image of a container first. The other containers then wait with the reason
    PodInitializing."""
    started = any(entry.running or entry.exit_code is not None for entry in pod.containers)
    return started and not any(entry.waiting in _NOT_PULLED for entry in pod.containers)


def _phase(pod: PodRecord, nodes: Mapping[str, NodeRecord], sign: Sign | None) -> PodPhase:
    if pod.phase in ("Failed", "Succeeded", "Unknown"):
        return PodPhase.LOST
    if pod.phase == "Pending" and not pod.program_runs:
        gone = silent(nodes.get(pod.node)) or (pod.deleting and cause_of(pod, sign) is not Cause.UNKNOWN)
        return PodPhase.LOST if pod.node and gone else PodPhase.PENDING  # Without its node the pod must start again.
    if silent(nodes.get(pod.node)):
        return PodPhase.LOST
    if pod.deleting and (cause_of(pod, sign) is Cause.UNKNOWN or not pod.program_runs):
        return PodPhase.LOST  # The pod was deleted by a user, or its grace period is over.
    return PodPhase.LOST if pod.outlived else PodPhase.RUNNING


def _noticed_at(node: NodeRecord | None, about: Sequence[EventRecord]) -> Instant | None:
    """When the notice was given, as far as it is recorded: taints have no time."""
    times = [event.at for event in about if EVENTS[event.reason].announces] + [node.deleted_at if node else None]
    return min((time for time in times if time is not None), default=None)


def _ends_at(pod: PodRecord, node: NodeRecord | None) -> Instant | None:
    """When the pod or its machine will be gone, if this is announced."""
    times = [pod.deleted_at, scheduled_at(node.scheduled) if node else None]
    return min((time for time in times if time is not None), default=None)


def _about(pod: PodRecord, node: NodeRecord | None, events: Sequence[EventRecord]) -> list[EventRecord]:
    """Events refer to a node by its uid or, those of the kubelet and the node controller, by its name as uid."""
    uids = {pod.uid, node.uid if node else "", pod.node} - {""}
    return [event for event in events if event.about_uid in uids and event.reason in EVENTS]
