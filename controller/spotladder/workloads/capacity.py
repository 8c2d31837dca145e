"""Why a pod does not run yet: no capacity, which is a reason to use another tier, or something that no tier cures.

| what is seen | means |
|---|---|
| the scheduler's PodScheduled=False/Unschedulable | `unschedulable`: provisionTimeout runs |
| Karpenter, Cluster Autoscaler or AKS say that the cloud has no machine | `refused`: it need not be waited for |
| image, quota, rights, admission, missing Secrets and volumes | `blocked`: the user must act; no tier is exhausted |

Karpenter deletes a NodeClaim that it cannot launch within a second. What remains are Events: on the pod that it was
nominated for which NodeClaim, on the NodeClaim that there was no capacity, and later on the pod that nothing fits. Pods
of a new attempt are new, and Events name pods by their uid: what was said of an earlier attempt is of no account.

Sources: Karpenter's pkg/controllers/provisioning/scheduling (nodeclaim.go for the words, events.go) and pkg/operator
(Events have the source "karpenter"; EKS Auto Mode's have "eks-auto-mode/compute"), what GKE's Cluster Autoscaler says
of pods, Kubernetes' job controller and kubelet.
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
"""Why a container waits when its image cannot be pulled."""

WAITING: frozenset[str] = WAITING_FOR_IMAGE | {
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError",
}  # fmt: skip
"""Why a container waits, where waiting for capacity would be in vain."""

NO_CAPACITY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Karpenter names the first of its criteria that nothing met. Where the pod's own wishes are among them, or only
        # its size, no time and no market cures it: that is a mistake, not a lack of capacity.
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
"""Events about a pod, and what their message must have to mean that the cloud has no machine."""

AUTOSCALERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"FailedScheduling": ("karpenter", "eks-auto-mode/compute"), "FailedScaleUp": (), "NotTriggerScaleUp": ()}
)
"""Events in which an autoscaler says why it brings no node for a pod, and the sources that count (none named: all)."""

LONGEST_WORDS = 400
"""Characters of the words of a scheduler, an autoscaler or Kueue that are passed on."""

HELD = "Pending"
"""The Event about a Workload of Kueue that says why it is not admitted."""

REFUSED_CLAIM = "InsufficientCapacityError"
NOT_CREATED = "FailedCreate"
"""Events that are not about a pod or its node: a pod's machine that there is none of, and what could not become one."""

_NOMINATED = "Nominated"
_WORDS = frozenset({*NO_CAPACITY, _NOMINATED})
_CLAIM = re.compile(r"nodeclaim/([a-z0-9.-]+)")

BLOCKING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        NOT_CREATED: ("forbidden", "exceeded quota", "denied the request", "is invalid"),
        "FailedMount": ("not found", "forbidden"),
        "FailedScaleUp": ("quota",),
    }
)
"""Events, and what their message must have to mean that somebody must act."""

REFUSES: Mapping[str, Blocker] = MappingProxyType(
    {
        **dict.fromkeys(sorted(WAITING_FOR_IMAGE), Blocker.IMAGE),
        "quota": Blocker.QUOTA,
        " cannot create resource ": Blocker.RIGHTS,
        " cannot get resource ": Blocker.RIGHTS,
        " cannot patch resource ": Blocker.RIGHTS,
    }
)
"""Words by which `blocked` or an answer of the API server tells who refuses. The API server answers "forbidden" to a
quota, to RBAC and to admission alike; only RBAC names the verb and the resource."""

_UNBOUND = ("persistentvolumeclaim", "not found")

EVENT_SELECTORS: tuple[str, ...] = (
    "source=karpenter",
    "source=eks-auto-mode/compute",
    "source=cluster-autoscaler,reason=FailedScaleUp",
    "source=cluster-autoscaler,reason=NotTriggerScaleUp",
    "source=cluster-autoscaler,reason=ScaleDown",
    f"involvedObject.kind=Workload,reason={HELD}",
    "source=job-controller,reason=FailedCreate",
    "source=kubelet,reason=FailedMount",
)
"""Field selectors of the Events that are ever looked at; all others are not even sent to us."""


def refused(pods: Iterable[PodRecord], events: Sequence[EventRecord]) -> bool:
    """Whether the provisioner's last word on any pod that waits for a node is that there is none."""
    waiting = {pod.uid for pod in pods if pod.phase == "Pending" and not pod.node and not pod.deleting}
    if not waiting:
        return False
    words = [event for event in events if event.about_uid in waiting and event.reason in _WORDS]
    last = {event.about_uid: event for event in sorted(words, key=_order)}
    claims = {event.about_name for event in events if event.reason == REFUSED_CLAIM}
    return any(_says_none(event, claims) for event in last.values())


def blocked(
    pods: Sequence[PodRecord],
    failures: Iterable[str],
    events: Sequence[EventRecord],
    about: str,
    wanted: int,
) -> str:
    """Why the attempt cannot start, in words for the user; "" when it can.

    `failures` are the reasons why the workload's operator could not create pods. `about` is the attempt's name: the
    names of all of its objects begin with it. `wanted` is the number of pods that the attempt has when none is missing:
    an Event about a pod that could not be created is history once all pods exist.
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
    """Who refuses, from what `blocked` or the API server says."""
    return next((who for word, who in REFUSES.items() if word in words), Blocker.TEMPLATE)


def words(pod: PodRecord, events: Iterable[EventRecord]) -> str:
    """Why a pod has no node, as the scheduler and the autoscaler say it; "" when neither has said anything."""
    if pod.phase != "Pending" or pod.node:
        return ""
    about = [event for event in events if event.about_uid == pod.uid and event.reason in AUTOSCALERS]
    told = [event for event in about if not AUTOSCALERS[event.reason] or event.source in AUTOSCALERS[event.reason]]
    newest = max(told, key=_order, default=None)
    # What preemption would help or not is said once for all nodes again.
    scheduler = pod.unschedulable.partition(" preemption:")[0].strip()
    autoscaler = f"{newest.source}: {newest.message}" if newest is not None else ""
    return _shortened("; ".join(part for part in (scheduler, autoscaler) if part))


def held(name: str, queue: str, events: Iterable[EventRecord]) -> str:
    """Why Kueue has not admitted the attempt of that name, which is in its queue."""
    about = [
        event
        for event in events
        if (event.about_kind, event.reason) == ("Workload", HELD)
        and event.about_name.partition("-")[2].startswith(f"{name}-")  # KIND-NAME-HASH
    ]
    newest = max(about, key=_order, default=None)
    said = f": {_shortened(newest.message)}" if newest is not None else ""
    return f"Kueue holds the attempt in queue {queue}{said}"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_WORDS else line[: LONGEST_WORDS - 1] + "…"


def nominated_for(event: EventRecord) -> list[str]:
    """The NodeClaims that this Event says its pod is to be scheduled on."""
    return _CLAIM.findall(event.message) if event.reason == _NOMINATED else []


def _order(event: EventRecord) -> tuple[float, int]:
    """Events are dated to the second; within it, the API server's own order decides."""
    return event.at or 0.0, int(event.resource_version) if event.resource_version.isdigit() else 0


def _says_none(event: EventRecord, refused_claims: set[str]) -> bool:
    if event.reason == _NOMINATED:
        return not refused_claims.isdisjoint(nominated_for(event))
    return any(word in event.message for word in NO_CAPACITY[event.reason])
