"""Why a pod does not run yet: missing capacity, which is a reason to use another tier, or a reason that no tier can
fix.

| observation | meaning |
|---|---|
| the scheduler's PodScheduled=False/Unschedulable | `unschedulable`: provisionTimeout runs |
| Karpenter, Cluster Autoscaler or AKS report that the cloud has no machine | `refused`: waiting is pointless |
| Karpenter nominates the pod for a NodeClaim, Cluster Autoscaler scales up for it | `provisioning`: a node will come |
| image, quota, permissions, admission, missing Secrets, volumes | `blocked`: the user must act; no tier is exhausted |

Karpenter deletes a NodeClaim that it cannot launch within a second. Only Events remain: on the pod, the NodeClaim for
which it was nominated; on the NodeClaim, that there was no capacity; and later on the pod, that no node fits. Events
refer to pods by uid, so Events of an earlier attempt do not affect the new one.

Sources: Karpenter's pkg/controllers/provisioning/scheduling (nodeclaim.go for the words, events.go) and pkg/operator
(Events have the source "karpenter"; EKS Auto Mode's have "eks-auto-mode/compute"), the Events of GKE's Cluster
Autoscaler, Kubernetes' job controller and kubelet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from spotladder.core.model import Blocker
from spotladder.workloads.records import EventRecord, PodRecord

WAITING_FOR_IMAGE: frozenset[str] = frozenset(
    {
        "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
        "RegistryUnavailable", "SignatureValidationFailed",
    }
)  # fmt: skip
"""Waiting reasons of a container whose image cannot be pulled."""

WAITING: frozenset[str] = WAITING_FOR_IMAGE | {
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}  # fmt: skip
"""Waiting reasons of a container that more capacity cannot fix."""

NO_CAPACITY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Karpenter names the first of its criteria that no instance type meets. If the pod's own constraints or its
        # size are the cause, waiting does not help: it is a mistake in the job, not a lack of capacity.
        "FailedScheduling": (
            "no instance type had enough resources or had a required offering",
            "no instance type has the required offering",
            "and had enough resources, had a required offering",
        ),
        "FailedScaleUp": (
            "out of resources",
            "stockout",
            "AllocationFailed",
            "SkuNotAvailable",
            "OverconstrainedAllocation",
        ),
    }
)
"""Events about a pod, with the text in their message that means that the cloud has no machine."""

AUTOSCALERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"FailedScheduling": ("karpenter", "eks-auto-mode/compute"), "FailedScaleUp": (), "NotTriggerScaleUp": ()}
)
"""Events with which an autoscaler explains why it adds no node for a pod, and the accepted sources (empty: all)."""

LONGEST_WORDS = 400
"""Maximum number of characters that are passed on from a message of a scheduler, an autoscaler or Kueue."""

HELD = "Pending"
"""The Event about a Workload of Kueue with the reason why it is not admitted."""

REFUSED_CLAIM = "InsufficientCapacityError"
NOT_CREATED = "FailedCreate"
"""Events about other objects than a pod or its node: a NodeClaim without a machine, an object whose pods cannot be
created."""

_NOMINATED = "Nominated"
_SCALES_UP = "TriggeredScaleUp"
_WORDS = frozenset({*NO_CAPACITY, *AUTOSCALERS, _NOMINATED, _SCALES_UP})
_CLAIM = re.compile(r"nodeclaim/([a-z0-9.-]+)")

BLOCKING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        NOT_CREATED: ("forbidden", "exceeded quota", "denied the request", "is invalid"),
        "FailedMount": ("not found", "forbidden"),
        "FailedScaleUp": ("quota",),
    }
)
"""Events, with the text in their message that means that the user must act."""

REFUSES: Mapping[str, Blocker] = MappingProxyType(
    {
        **dict.fromkeys(sorted(WAITING_FOR_IMAGE), Blocker.IMAGE),
        "quota": Blocker.QUOTA,
        " cannot create resource ": Blocker.FORBIDDEN,
        " cannot get resource ": Blocker.FORBIDDEN,
        " cannot patch resource ": Blocker.FORBIDDEN,
    }
)
"""Texts by which `blocked` or a response of the API server shows what refuses the pod. The API server answers
"forbidden" for a quota, for RBAC and for admission; only RBAC names the verb and the resource."""

_UNBOUND = ("persistentvolumeclaim", "not found")

EVENT_SELECTORS: tuple[str, ...] = (
    "source=karpenter",
    "source=eks-auto-mode/compute",
    "source=cluster-autoscaler,reason=FailedScaleUp",
    "source=cluster-autoscaler,reason=NotTriggerScaleUp",
    f"source=cluster-autoscaler,reason={_SCALES_UP}",
    "source=cluster-autoscaler,reason=ScaleDown",
    f"involvedObject.kind=Workload,reason={HELD}",
    "source=job-controller,reason=FailedCreate",
    "source=kubelet,reason=FailedMount",
)
"""Field selectors of the Events that the controller watches; the API server sends no others."""


def refused(pods: Iterable[PodRecord], events: Sequence[EventRecord]) -> frozenset[str]:
    """The uids of the pending pods about which the provisioner's last message is that there is no capacity."""
    claims = _refused_claims(events)
    return frozenset(event.about_uid for event in _last_messages(pods, events) if _says_none(event, claims))


def provisioning(pods: Iterable[PodRecord], events: Sequence[EventRecord]) -> bool:
    """Whether the provisioner's last message about any pending pod is that it adds a node for it."""
    claims = _refused_claims(events)
    last = _last_messages(pods, events)
    return any(event.reason in (_NOMINATED, _SCALES_UP) and not _says_none(event, claims) for event in last)


def blocked(
    pods: Sequence[PodRecord],
    failures: Iterable[str],
    events: Sequence[EventRecord],
    about: str,
    wanted: int,
) -> str:
    """Why the attempt cannot start, for the user; "" if it can.

    `failures` are the reasons why the workload's operator could not create pods. `about` is the attempt's name, the
    prefix of the names of all of its objects. `wanted` is the attempt's full number of pods: an Event about a pod that
    could not be created is outdated once all pods exist.
    """
    waiting = [pod for pod in pods if pod.phase == "Pending" and not pod.deleting]
    for pod in waiting:
        for container in pod.containers:
            if container.waiting in WAITING:
                return f"{pod.name}: {container.waiting}: {container.waiting_message}".rstrip(": ")
        if all(word in pod.unschedulable for word in _UNBOUND):
            return f"{pod.name}: {pod.unschedulable}"
    if failure := next(filter(None, failures), ""):
        return failure
    uids = {pod.uid for pod in waiting}
    for event in events if uids or len(pods) < wanted else ():
        of_a_pod = event.about_uid in uids
        of_the_rest = len(pods) < wanted and event.reason == NOT_CREATED and event.about_name.startswith(about)
        if (of_a_pod or of_the_rest) and any(word in event.message for word in BLOCKING.get(event.reason, ())):
            return f"{event.about_name}: {event.message}"
    return ""


def blocker(words: str) -> Blocker:
    """What refuses the attempt, according to `blocked` or a response of the API server."""
    return next((who for word, who in REFUSES.items() if word in words), Blocker.TEMPLATE)


def words(pod: PodRecord, events: Iterable[EventRecord]) -> str:
    """Why a pod has no node, according to the scheduler and the autoscaler; "" if neither has reported anything."""
    if pod.phase != "Pending" or pod.node:
        return ""
    about = [event for event in events if event.about_uid == pod.uid and event.reason in AUTOSCALERS]
    relevant = [event for event in about if not AUTOSCALERS[event.reason] or event.source in AUTOSCALERS[event.reason]]
    newest = max(relevant, key=_order, default=None)
    # The part on preemption repeats the message for all nodes.
    scheduler = pod.unschedulable.partition(" preemption:")[0].strip()
    autoscaler = f"{newest.source}: {newest.message}" if newest is not None else ""
    return _shortened("; ".join(part for part in (scheduler, autoscaler) if part))


def held(name: str, queue: str, events: Iterable[EventRecord]) -> str:
    """Why Kueue has not admitted the queued attempt with this name."""
    about = [
        event
        for event in events
        if (event.about_kind, event.reason) == ("Workload", HELD)
        and event.about_name.partition("-")[2].startswith(f"{name}-")  # KIND-NAME-HASH
    ]
    newest = max(about, key=_order, default=None)
    reason = f": {_shortened(newest.message)}" if newest is not None else ""
    return f"Kueue holds the attempt in queue {queue}{reason}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_WORDS else line[: LONGEST_WORDS - 1] + "…"


def nominated_for(event: EventRecord) -> list[str]:
    """The NodeClaims for which this Event says that its pod was nominated."""
    return _CLAIM.findall(event.message) if event.reason == _NOMINATED else []


def _last_messages(pods: Iterable[PodRecord], events: Sequence[EventRecord]) -> list[EventRecord]:
    """The provisioner's last message about each pending pod."""
    waiting = {pod.uid for pod in pods if pod.phase == "Pending" and not pod.node and not pod.deleting}
    if not waiting:
        return []
    words = [event for event in events if event.about_uid in waiting and event.reason in _WORDS]
    return list({event.about_uid: event for event in sorted(words, key=_order)}.values())


def _refused_claims(events: Sequence[EventRecord]) -> set[str]:
    return {event.about_name for event in events if event.reason == REFUSED_CLAIM}


def _order(event: EventRecord) -> tuple[float, int]:
    """Events are dated to the second; within a second, the API server's own order decides."""
    return event.at or 0.0, int(event.resource_version) if event.resource_version.isdigit() else 0


def _says_none(event: EventRecord, refused_claims: set[str]) -> bool:
    if event.reason == _NOMINATED:
        return not refused_claims.isdisjoint(nominated_for(event))
    return any(word in event.message for word in NO_CAPACITY.get(event.reason, ()))
