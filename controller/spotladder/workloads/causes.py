"""Why a pod was lost: one table for all evidence from Kubernetes, the clouds and the autoscalers.

The first of these that gives a cause decides:

1. the pod's own reason, if it is unambiguous (preempted by the scheduler, out of memory)
2. its node's taints, conditions, deletion and Events
3. the reason why the pod was disrupted or failed
4. the silence or the absence of its node
5. the exit code of its program

Otherwise the cause is `Unknown`, which counts like any other loss. A sign that *announces* is observed before the
loss: the pod still runs and can commit.

Sources: Kubernetes' pages on pod disruption conditions and on well-known taints, Karpenter's pkg/events/reason.go,
karpenter-provider-aws's pkg/controllers/interruption/events, karpenter-provider-azure's node/interruption controller
(the conditions of AKS's node problem detector, and their messages), aws-node-termination-handler's pkg/node (taints),
AKS's page on node auto-drain (the remediator's taint; its release notes have the older name), GKE's node termination
handler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType

from spotladder.core.contract import ExitCode
from spotladder.core.model import Instant
from spotladder.core.reasons import Cause
from spotladder.workloads.containers import ContainerRecord
from spotladder.workloads.exits import KILLED_CONTAINER
from spotladder.workloads.records import EventRecord, NodeRecord, PodRecord


@dataclass(frozen=True, slots=True)
class Sign:
    """The meaning of a sign for the pods on a node. `announces`: they still run, but will be lost soon."""

    cause: Cause
    announces: bool = False


_RECLAIMED = Sign(Cause.INTERRUPTION, announces=True)
_PACKED = Sign(Cause.CONSOLIDATED, announces=True)
_SILENT = Sign(Cause.NODE_LOST)
_MAINTAINED = Sign(Cause.MAINTENANCE, announces=True)

DISRUPTIONS: Mapping[str, Cause] = MappingProxyType(
    {
        "PreemptionByScheduler": Cause.PREEMPTED,
        "DeletionByTaintManager": Cause.NODE_LOST,  # a NoExecute taint: not-ready or unreachable for too long
        "DeletionByPodGC": Cause.NODE_LOST,  # its node object is gone
        "EvictionByEvictionAPI": Cause.CONSOLIDATED,  # a drain; if it is for a reclaim, the node's signs show it
        "TerminationByKubelet": Cause.INTERRUPTION,  # the machine shuts down; for pressure, the pod's reason decides
    }
)
"""Reasons of the pod condition DisruptionTarget."""

POD_REASONS: Mapping[str, Cause] = MappingProxyType(
    {
        "Preempting": Cause.PREEMPTED,  # the kubelet preempted it for a critical pod
        "Terminated": Cause.INTERRUPTION,  # graceful node shutdown
        "Shutdown": Cause.INTERRUPTION,  # the same, from older kubelets and GKE
        "NodeShutdown": Cause.INTERRUPTION,
        "NodeLost": Cause.NODE_LOST,
        "DeadlineExceeded": Cause.APP_ERROR,  # its own activeDeadlineSeconds
    }
)
"""`status.reason` of a pod. For `Evicted`, the message decides: see `pressure`."""

TAINTS: Mapping[str, Sign] = MappingProxyType(
    {
        # Karpenter does not consolidate nodes with do-not-disrupt pods: if it taints one, the node must be removed.
        "karpenter.sh/disrupted": _RECLAIMED,
        "karpenter.sh/disruption": _RECLAIMED,
        "aws-node-termination-handler/spot-itn": _RECLAIMED,
        "aws-node-termination-handler/asg-lifecycle-termination": _RECLAIMED,
        "aws-node-termination-handler/scheduled-maintenance": _RECLAIMED,
        "aws-node-termination-handler/rebalance-recommendation": _RECLAIMED,
        "cloud.google.com/impending-node-termination": _RECLAIMED,
        "remediator.kubernetes.azure.com/unschedulable": _RECLAIMED,
        "remediator.aks.microsoft.com/unschedulable": _RECLAIMED,
        "node.cloudprovider.kubernetes.io/shutdown": Sign(Cause.INTERRUPTION),
        "ToBeDeletedByClusterAutoscaler": _PACKED,
        "node.kubernetes.io/unreachable": _SILENT,
        "node.kubernetes.io/out-of-service": _SILENT,
    }
)
"""Keys of node taints."""

SCHEDULED: Mapping[str, Sign] = MappingProxyType(
    {"Preempt": _RECLAIMED, "Terminate": _RECLAIMED, "Redeploy": _RECLAIMED}
)
"""Prefixes of the events that Azure has scheduled for a machine. Freeze and Reboot keep the node, and a
SpotRebalanceRecommendation is a recommendation; the condition of the node is True with the same reason for all of
them."""

EVENTS: Mapping[str, Sign] = MappingProxyType(
    {
        # Karpenter on AWS
        "SpotInterrupted": _RECLAIMED,
        "TerminatingOnInterruption": _RECLAIMED,
        "InstanceStopping": _RECLAIMED,
        "InstanceTerminating": _RECLAIMED,
        "InstanceUnhealthy": Sign(Cause.NODE_LOST, announces=True),
        # Karpenter
        "DisruptionTerminating": _PACKED,
        # Cluster Autoscaler
        "ScaleDown": _PACKED,
    }
)
"""Reasons of Events about a pod or its node. Conditions repeat the Events of Kubernetes itself and of AKS."""

EXIT_REASONS: Mapping[str, Cause] = MappingProxyType(
    {
        "OOMKilled": Cause.OOM_KILLED,
        "ContainerStatusUnknown": Cause.NODE_LOST,  # the kubelet restarted and no longer knew the container
        "StartError": Cause.APP_ERROR,
        "ContainerCannotRun": Cause.APP_ERROR,
    }
)
"""Reasons of a terminated container that are more specific than its exit code."""

EXIT_CODES: Mapping[int, Cause] = MappingProxyType(
    {
        0: Cause.UNKNOWN,  # ended normally, which does not explain the loss of the pod
        ExitCode.INTERRUPTED: Cause.UNKNOWN,  # committed and stopped: the attempt's end, not a loss
        ExitCode.FENCED: Cause.UNKNOWN,  # fenced: the attempt's end
        ExitCode.ACCESS_DENIED: Cause.UNKNOWN,  # the checkpoint store refuses the credentials: the attempt's end
        ExitCode.STORE_UNSAFE: Cause.UNKNOWN,  # the checkpoint store cannot fence: the attempt's end
        **dict.fromkeys(KILLED_CONTAINER, Cause.UNKNOWN),  # the other signs give the cause
    }
)
"""Exit codes of programs. Any other exit code is the program's own error."""


def node_sign(node: NodeRecord | None, events: Iterable[EventRecord] = ()) -> Sign | None:
    """The sign that a node shows; None for a healthy node. A reclaim takes precedence over silence, which it causes.

    `events` are those about this node or the pod on it. `node` is None if the node no longer exists.
    """
    signs = [EVENTS[event.reason] for event in events if event.reason in EVENTS]
    if node is None:
        signs.append(_SILENT)
    else:
        signs += [TAINTS[key] for key in node.taints if key in TAINTS]
        signs += [sign for word, sign in SCHEDULED.items() if node.scheduled.startswith(f"{word} ")]
        if node.deleting:
            signs.append(_RECLAIMED)
        if node.ready == "False" and "shutting down" in node.ready_message:
            signs.append(_RECLAIMED)
        if node.spot and node.cordoned:
            # EKS node groups and AKS cordon nodes that are reclaimed; the attempt's disruption budget refuses their
            # drain.
            signs.append(_RECLAIMED)
        if node.cordoned and not node.spot:
            signs.append(_MAINTAINED)  # kubectl cordon and drain, and upgrades of node pools.
        if node.ready == "Unknown":
            signs.append(_SILENT)
    return min(signs, key=_rank, default=None)


def scheduled_at(message: str) -> Instant | None:
    """The time in an event that Azure has scheduled: "Preempt Scheduled: Sat, 01 Aug 2026 12:00:30 GMT. …"."""
    date = message.partition(": ")[2].partition(" GMT")[0]
    try:
        return datetime.strptime(date, "%a, %d %b %Y %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None  # The event has started, or has no date.


def silent(node: NodeRecord | None) -> bool:
    """Whether the node does not report, so that the status of its pods is outdated."""
    return node is None or node.ready == "Unknown" or not _SILENT_TAINTS.isdisjoint(node.taints)


def not_heard_of(node: NodeRecord | None) -> bool:
    """Whether the node exists and has stopped sending heartbeats. With an out-of-service taint, an administrator
    states that the machine is off."""
    return node is not None and silent(node) and "node.kubernetes.io/out-of-service" not in node.taints


_SILENT_TAINTS = frozenset(key for key, sign in TAINTS.items() if sign == _SILENT)


def _rank(sign: Sign) -> int:
    return (Cause.PREEMPTED, Cause.INTERRUPTION, Cause.CONSOLIDATED, Cause.MAINTENANCE, Cause.NODE_LOST).index(
        sign.cause
    )


def cause_of(pod: PodRecord, sign: Sign | None) -> Cause:
    """Why this pod was or will be lost. `sign` is that of its node."""
    if pod.disruption == "PreemptionByScheduler" or pod.reason == "Preempting":
        return Cause.PREEMPTED
    if any(container.exit_reason == "OOMKilled" for container in pod.own_containers):
        return Cause.OOM_KILLED
    if sign is not None and sign.cause is not Cause.NODE_LOST:
        return sign.cause
    if pod.reason == "Evicted":
        return pressure(pod.message)
    if cause := POD_REASONS.get(pod.reason) or DISRUPTIONS.get(pod.disruption):
        return cause
    if sign is not None:
        return sign.cause
    ended = (_ended(container) for container in pod.own_containers)
    return next((cause for cause in ended if cause is not Cause.UNKNOWN), Cause.UNKNOWN)


def pressure(message: str) -> Cause:
    """Why the kubelet evicted a pod, from its message: memory, the pod's own limits, or other pods' use of the disk."""
    if "memory" in message:
        return Cause.OOM_KILLED
    own = ("exceeds the", "exceeded its", "has larger consumption of")  # than it requests
    return Cause.APP_ERROR if any(words in message for words in own) else Cause.UNKNOWN


def _ended(container: ContainerRecord) -> Cause:
    if container.exit_code is None:
        return Cause.UNKNOWN
    if container.exit_reason in EXIT_REASONS:
        return EXIT_REASONS[container.exit_reason]
    return EXIT_CODES.get(container.exit_code, Cause.APP_ERROR)
