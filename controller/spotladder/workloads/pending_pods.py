"""Why a pod does not run yet: missing capacity of its tier, which is a reason to use another one, a pod that fits no
node of its tier, or a reason that no tier can fix. The table of all sentences is in `provisioner_messages.py`.

Karpenter deletes a NodeClaim that it cannot launch within a second. Only Events remain: on the pod, the NodeClaim for
which it was nominated; on the NodeClaim, that there was no capacity; and later on the pod, that no node fits. Events
refer to pods by uid, so Events of an earlier attempt do not affect the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from spotladder.core.model import Blocker
from spotladder.workloads.provisioner_messages import BLOCKERS, REFUSALS, Meaning, Row, Speaker, read, says
from spotladder.workloads.records import EventRecord, PodRecord

WAITING_FOR_IMAGE: frozenset[str] = frozenset(says(Speaker.CONTAINER, Meaning.IMAGE))
"""Waiting reasons of a container whose image cannot be pulled."""

WAITING: frozenset[str] = frozenset(says(Speaker.CONTAINER, *Meaning))
"""Waiting reasons of a container that more capacity cannot fix."""

AUTOSCALERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"FailedScheduling": ("karpenter", "eks-auto-mode/compute"), "FailedScaleUp": (), "NotTriggerScaleUp": ()}
)
"""Events with which an autoscaler explains why it adds no node for a pod, and the accepted sources (empty: all)."""

LONGEST_WORDS = 400
"""Maximum number of characters that are passed on from a message of a scheduler or an autoscaler."""

REFUSED_CLAIM = "InsufficientCapacityError"
NOT_CREATED = "FailedCreate"
"""Events about other objects than a pod or its node: a NodeClaim without a machine, an object whose pods cannot be
created."""

NO_SANDBOX = "FailedCreatePodSandBox"
"""The Event of a kubelet that cannot start any container of a pod: its node has no free address, or lacks the pod's
runtime. It is a fault of the node, so `provisionTimeout` runs."""

_SPEAKERS: Mapping[str, Speaker] = MappingProxyType(
    {
        "FailedScheduling": Speaker.KARPENTER,
        "FailedScaleUp": Speaker.AUTOSCALER,
        "NotTriggerScaleUp": Speaker.AUTOSCALER,
        REFUSED_CLAIM: Speaker.KARPENTER,
        NOT_CREATED: Speaker.API,
        "FailedMount": Speaker.VOLUMES,
        "FailedMapVolume": Speaker.VOLUMES,
        "FailedAttachVolume": Speaker.VOLUMES,
    }
)
"""Reasons of Events, and whose sentence their message is."""

_NOMINATED = "Nominated"
EXPLAINING = frozenset({*AUTOSCALERS, _NOMINATED, REFUSED_CLAIM, NO_SANDBOX})
"""Reasons of the Events that `words` reads."""

_SCALES_UP = "TriggeredScaleUp"
_WORDS = frozenset({*AUTOSCALERS, _NOMINATED, _SCALES_UP})
_CLAIM = re.compile(r"nodeclaim/([a-z0-9.-]+)")

EVENT_SELECTORS: tuple[str, ...] = (
    "source=karpenter",
    "source=eks-auto-mode/compute",
    "source=cluster-autoscaler,reason=FailedScaleUp",
    "source=cluster-autoscaler,reason=NotTriggerScaleUp",
    f"source=cluster-autoscaler,reason={_SCALES_UP}",
    "source=cluster-autoscaler,reason=ScaleDown",
    "source=job-controller,reason=FailedCreate",
    "source=kubelet,reason=FailedMount",
    "source=kubelet,reason=FailedMapVolume",
    "source=attachdetach-controller,reason=FailedAttachVolume",
    f"source=kubelet,reason={NO_SANDBOX}",
)
"""Field selectors of the Events that the controller watches; the API server sends no others."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """Why an attempt cannot start on any tier, for the user ("": it can), and what refuses it."""

    message: str = ""
    by: Blocker = Blocker.TEMPLATE


def refused(pods: Iterable[PodRecord], events: Sequence[EventRecord]) -> frozenset[str]:
    """The uids of the pending pods about which the provisioner's last message is that it makes no node for them: the
    tier has no capacity, or its nodes do not fit."""
    claims = _refused_claims(events)
    return frozenset(event.about_uid for event in _last_messages(pods, events) if _says_none(event, claims))


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a pod fits no node of its tier, for the user. `lasts`: waiting does not help."""

    message: str
    lasts: bool


def misfits(pods: Iterable[PodRecord], events: Sequence[EventRecord]) -> dict[str, Misfit]:
    """Why pending pods fit no node of their tier, by uid. The provisioner's word on the nodes that it can make counts
    more than the scheduler's on the nodes that exist."""
    waiting = [pod for pod in pods if pod.phase == "Pending" and not pod.node and not pod.deleting]
    last = {event.about_uid: event for event in _last_messages(waiting, events)}
    found = {}
    for pod in waiting:
        if (event := last.get(pod.uid)) is not None:
            row, sentence = _row(event), event.message
        else:
            row, sentence = read(Speaker.SCHEDULER, pod.unschedulable), pod.unschedulable.partition(" preemption:")[0]
        if row is not None and row.means is Meaning.MISFIT:
            found[pod.uid] = Misfit(_misfit(pod, row, sentence), row.lasts)
    return found


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
) -> Blocked:
    """Why the attempt cannot start.

    `failures` are the reasons why the workload's operator could not create pods. `about` is the attempt's name, the
    prefix of the names of all of its objects. `wanted` is the attempt's full number of pods: an Event about a pod that
    could not be created is outdated once all pods exist.
    """
    waiting = [pod for pod in pods if pod.phase == "Pending" and not pod.deleting]
    for pod in waiting:
        for container in pod.containers:
            if container.waiting and (row := read(Speaker.CONTAINER, container.waiting)):
                message = f"{pod.name}: {container.waiting}: {container.waiting_message}".rstrip(": ")
                return Blocked(message, BLOCKERS[row.means])
        if (row := read(Speaker.SCHEDULER, pod.unschedulable)) is not None and row.means in BLOCKERS:
            return _of_volume(pod, row, pod.unschedulable)
    if failure := next(filter(None, failures), ""):
        return refusal(failure)
    return next(_reported(pods, waiting, events, about, wanted), Blocked())


def refusal(sentence: str) -> Blocked:
    """What an operator's report on a pod that it cannot create, or a response of the API server, means."""
    row = read(Speaker.API, sentence)
    return Blocked(sentence, Blocker.TEMPLATE if row is None else BLOCKERS[row.means])


def _reported(
    pods: Sequence[PodRecord], waiting: Sequence[PodRecord], events: Sequence[EventRecord], about: str, wanted: int
) -> Iterator[Blocked]:
    """The Events that block the attempt. Once the volumes of a pod are mounted, its Events on them are outdated."""
    by_uid = {pod.uid: pod for pod in waiting}
    for event in events if waiting or len(pods) < wanted else ():
        pod, speaker = by_uid.get(event.about_uid), _SPEAKERS.get(event.reason)
        of_the_rest = len(pods) < wanted and event.reason == NOT_CREATED and event.about_name.startswith(about)
        if speaker not in (Speaker.API, Speaker.VOLUMES) or (pod is None and not of_the_rest):
            continue
        row = read(speaker, event.message)
        if row is None or row.means not in BLOCKERS or (pod is not None and pod.mounted):
            continue
        if row.means is not Meaning.VOLUME:
            yield Blocked(f"{event.about_name}: {event.message}", BLOCKERS[row.means])
        elif pod is not None:
            yield _of_volume(pod, row, event.message)


def _of_volume(pod: PodRecord, row: Row, sentence: str) -> Blocked:
    said = _shortened(sentence.partition(" preemption:")[0])
    return Blocked(f"{pod.name}: {_claims(pod)}{said}: {row.remedy}", BLOCKERS[row.means])


def _misfit(pod: PodRecord, row: Row, sentence: str) -> str:
    asks = f"it requests {pod.requests}; " if pod.requests else ""
    return f"{asks}{_claims(pod) if row.names_volume else ''}{row.speaker}: {_shortened(sentence)}: {row.remedy}"


def _claims(pod: PodRecord) -> str:
    if not pod.claims:
        return ""
    return f"claim {', '.join(pod.claims)}: " if len(pod.claims) == 1 else f"claims {', '.join(pod.claims)}: "


def words(pod: PodRecord, events: Iterable[EventRecord]) -> str:
    """Why a pod has no node, according to the scheduler and the autoscaler, or why its node cannot start it; "" if none
    has reported anything."""
    if pod.phase != "Pending":
        return ""
    if pod.node:
        failed = [event for event in events if event.reason == NO_SANDBOX and event.about_uid == pod.uid]
        last = None if pod.mounted else max(failed, key=_order, default=None)
        return _shortened(f"node {pod.node} cannot start the pod: {last.message}") if last else ""
    about = [event for event in events if event.about_uid == pod.uid and event.reason in AUTOSCALERS]
    relevant = [event for event in about if not AUTOSCALERS[event.reason] or event.source in AUTOSCALERS[event.reason]]
    newest = max(relevant, key=_order, default=None)
    claims = {claim for event in events if event.about_uid == pod.uid for claim in nominated_for(event)}
    refusals = (event for event in events if event.reason == REFUSED_CLAIM and event.about_name in claims)
    newest = max(filter(None, (newest, *refusals)), key=_order, default=None)
    # The part on preemption repeats the message for all nodes.
    scheduler = pod.unschedulable.partition(" preemption:")[0].strip()
    autoscaler = f"{newest.source}: {newest.message}" if newest is not None else ""
    return _shortened("; ".join(part for part in (scheduler, autoscaler) if part))


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
    row = _row(event)
    return row is not None and (row.means in REFUSALS or row.means is Meaning.MISFIT)


def _row(event: EventRecord) -> Row | None:
    """What an autoscaler's Event means; None if it means nothing for capacity. The scheduler's own Events repeat the
    condition of the pod."""
    sources = AUTOSCALERS.get(event.reason)
    if sources is None or (sources and event.source not in sources):
        return None
    return read(_SPEAKERS[event.reason], event.message)
