"""Detects each impediment from observed facts. Every function returns a sentence for the user, or "" if it does not
apply.

The table in `impediment.py` defines the effect of each impediment. The sentences are written into the job's status, so
those of a wait have no counts and no lists of pods: those of a large job change often.
"""

from __future__ import annotations

from spotladder.core.diagnosis.silence import has_stopped
from spotladder.core.diagnosis.verdict import Outcome, judge
from spotladder.core.durations import format_duration
from spotladder.core.facts.elastic import begin_due
from spotladder.core.facts.tier_view import view_of
from spotladder.core.history.crashes import crash_message
from spotladder.core.history.losses import counted_pods
from spotladder.core.history.pacing import pause_message
from spotladder.core.model import Blocker, Exit, PodPhase, PodSeen, Stage
from spotladder.core.model.gang import gang_misfit
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import LIVE, Situation

MANY_NODES = 3
MAX_OF_A_CLUSTER = 0.55
"""The number and the share of silent nodes from which silence counts as a loss of contact: the thresholds at which the
node lifecycle controller of Kubernetes stops evicting (`--unhealthy-zone-threshold`)."""


def program_ended(situation: Situation) -> str:
    """The program has failed, or has ended before its declared last step, and the failure attribution window is
    open."""
    seen = situation.attempt_seen
    if situation.state.stage not in LIVE or seen is None or seen.exit not in (Exit.FAILED, Exit.SUCCEEDED):
        return ""
    found = judge(situation)
    if found is None or (seen.exit is Exit.SUCCEEDED and found.outcome is not Outcome.UNKNOWN):
        return ""
    message = found.message
    window = format_duration(situation.spec.attribution_window) if situation.spec.attribution_window else "a moment"
    return f"the program has ended ({message}); a pod that is lost within {window} may still explain it"


def cluster_unreachable(situation: Situation) -> str:
    """The attempt's cluster does not answer."""
    if situation.state.stage not in LIVE or situation.reachable:
        return ""
    return situation.seen.unavailable.get(situation.state.tier) or "the attempt's cluster cannot be reached"


def contact_lost(situation: Situation) -> str:
    """Nodes of the attempt fell silent together, or right after the watch was interrupted. This is first treated as a
    loss of contact: their pods do not count as lost for contactTimeout, unless the program's heartbeats have stopped,
    too. A single silent node counts as lost."""
    seen, attempt, before = situation.attempt_seen, situation.state.attempt, situation.state.impeded
    if (
        situation.state.stage not in LIVE
        or attempt is None
        or seen is None
        or not seen.reachable
        or seen.exit is not None
    ):
        return ""
    counted = counted_pods(attempt, seen)
    pods = [pod for pod in seen.pods if pod.silent and pod.uid not in counted]
    if not pods:
        return ""
    if situation.passed(situation.contact_deadline) or has_stopped(situation):
        return ""
    restored = seen.contact_restored_at
    if before is not None and before.reason is Reason.CONTACT_LOST:
        why = f"{max(1, seen.silent_nodes)} of {max(1, seen.nodes)} nodes of the job are silent"
    elif restored is not None and situation.now - restored < situation.spec.contact_timeout:
        why = "the watch of the cluster was interrupted"
    elif seen.silent_nodes >= max(2, seen.nodes):
        why = f"all {seen.nodes} nodes of the job are silent"
    elif seen.cluster_silent_nodes >= max(MANY_NODES, MAX_OF_A_CLUSTER * seen.cluster_nodes):
        why = f"{seen.cluster_silent_nodes} of {seen.cluster_nodes} nodes of the cluster are silent"
    else:
        return ""
    limit = format_duration(situation.spec.contact_timeout)
    return f"{why}: unless contact returns within {limit}, their pods count as lost ({_names(pods)})"


def operator_silent(situation: Situation) -> str:
    """The workload's operator (KubeRay, JobSet) or the scheduler does not act."""
    facts = situation.attempt_seen or situation.seen
    silent = facts.operator_silent if situation.state.stage in LIVE else ""
    return silent or _blocked_by(situation, Blocker.NO_ANSWER)


def access_denied(situation: Situation) -> str:
    """The API server or the checkpoint store refuses the credentials in use."""
    state = situation.state
    if state.stage is Stage.IDLE:
        message = f"the checkpoint store refused the credentials of the last attempt: {state.refusals.error}"
        return message if _waits_after(situation, Reason.ACCESS_DENIED) else ""
    return _blocked_by(situation, Blocker.FORBIDDEN)


def store_unsafe(situation: Situation) -> str:
    """The checkpoint store cannot fence an attempt that was cut off."""
    return situation.state.refusals.error if _waits_after(situation, Reason.STORE_UNSAFE) else ""


def _waits_after(situation: Situation, reason: Reason) -> bool:
    """Whether the job waits because its last attempt ended for this reason."""
    state = situation.state
    waits = state.stage is Stage.IDLE and situation.paused
    return waits and bool(state.history) and state.history[-1].reason is reason


def waits_for_quota(situation: Situation) -> str:
    """Kueue holds the attempt until its queue has quota. An attempt with quota, for which the provisioner has no nodes,
    lacks capacity instead."""
    queue = situation.held_by
    return (
        "" if queue is None or queue.inadmissible or queue.refused else queue.message or "the attempt waits for quota"
    )


def inadmissible(situation: Situation) -> str:
    """Kueue cannot admit the attempt before the queue or the job is changed."""
    queue = situation.held_by
    return queue.message or "the attempt cannot be admitted" if queue is not None and queue.inadmissible else ""


def quota_exceeded(situation: Situation) -> str:
    """A ResourceQuota of the namespace refuses the pods."""
    return _blocked_by(situation, Blocker.QUOTA)


def image_unavailable(situation: Situation) -> str:
    """An image cannot be pulled."""
    return _blocked_by(situation, Blocker.IMAGE)


def volume_unavailable(situation: Situation) -> str:
    """A volume of a pod does not exist, or cannot be attached or mounted."""
    return _blocked_by(situation, Blocker.VOLUME)


def template_refused(situation: Situation) -> str:
    """Pods or containers cannot be created from their template: a missing Secret, an admission webhook."""
    return _blocked_by(situation, Blocker.TEMPLATE)


def maintenance(situation: Situation) -> str:
    """An administrator drains or cordons nodes of the attempt."""
    seen = situation.attempt_seen
    if situation.state.stage not in LIVE or seen is None:
        return ""
    going = [pod for pod in seen.pods if pod.noticed and pod.cause is Cause.MAINTENANCE]
    nodes = ", ".join(sorted({pod.node for pod in going if pod.node}))
    return f"node {nodes} is cordoned or drained: the job commits and moves off it ({_names(going)})" if going else ""


def store_unavailable(situation: Situation) -> str:
    """The checkpoint store does not answer."""
    seen = situation.attempt_seen
    if situation.state.stage not in LIVE or seen is None or seen.store_unavailable_since is None:
        return ""
    why = f" ({seen.store_message})" if seen.store_message else ""
    return f"the checkpoint store does not answer{why}; nothing is committed until it does"


def crash_loop(situation: Situation) -> str:
    """The job waits before the next attempt, because attempts ended before they were ready, or ended on their own."""
    state = situation.state
    waits = state.stage is Stage.IDLE and situation.paused and not _pauses(situation)
    return crash_message(state) or pause_message(state) if waits else ""


def slow_start(situation: Situation) -> str:
    """Every pod has its node and its image, but Ray, or the program, is not ready yet."""
    seen = situation.attempt_seen
    if situation.state.stage not in (Stage.STARTING, Stage.RECOVERING) or seen is None or not situation.all_placed:
        return ""
    if situation.all_pods_ready:
        return "every pod is ready; the program has not shown progress yet"
    if begin_due(situation, situation.attempt) is not None:
        return "enough workers are ready; the program begins without the workers that get no node"
    return "every pod has a node and its image, but not all are ready yet"


def does_not_fit(situation: Situation) -> str:
    """No node of the tier can ever hold a pod: its requests, its selectors or the zone of its volume do not fit. An
    attempt that avoids nodes shows nothing about its tier."""
    state = situation.state
    if state.stage is Stage.IDLE:
        return (
            f"no tier fits; the job restarts after a pause: {state.misfit}"
            if _pauses(situation) and state.misfit
            else ""
        )
    if state.stage not in (Stage.STARTING, Stage.RECOVERING) or situation.attempt.avoids:
        return ""
    pod = gang_misfit(situation.attempt_seen, situation.needed)
    if pod is None:
        return ""
    lasts = ", and waiting does not help" if pod.misfit_lasts else ""
    return f"{pod.called} fits no node of {state.tier}{lasts}: {pod.misfit}"


def no_capacity(situation: Situation) -> str:
    """Pods are missing or wait for a node."""
    if situation.state.stage is Stage.IDLE and situation.state.timers.paused_until is not None:
        return "every tier was exhausted; the job restarts after a pause" if _pauses(situation) else ""
    if situation.state.stage is Stage.IDLE:
        return (
            "; ".join(situation.seen.unavailable.values())
            if situation.open and not view_of(situation, live=False).available
            else ""
        )
    if situation.state.stage not in (Stage.STARTING, Stage.RECOVERING):
        return ""
    if situation.held_by is not None and situation.held_by.refused:
        return situation.held_by.message or "the provisioner has no capacity"
    pods = situation.attempt_seen.pods if situation.attempt_seen is not None else ()
    waiting = [pod for pod in pods if pod.phase is PodPhase.PENDING and not pod.placed and pod.waiting_message]
    words = min(waiting, key=lambda pod: pod.called).waiting_message if waiting else ""
    what = "the provisioner has no capacity" if situation.refused else "pods wait for nodes and images"
    avoids = f"; the attempt avoids {', '.join(situation.attempt.avoids)}" if situation.attempt.avoids else ""
    return (f"{what}: {words}" if words else what) + avoids


def _pauses(situation: Situation) -> bool:
    """Whether the job waits because every tier was exhausted."""
    return situation.paused and not situation.state.tier


def _blocked_by(situation: Situation, blocker: Blocker) -> str:
    if situation.state.stage not in LIVE:
        return ""
    facts = situation.attempt_seen or situation.seen
    return facts.blocked if facts.blocked_by is blocker else ""


def _names(pods: list[PodSeen]) -> str:
    named = [f"{pod.called} (container {pod.container})" if pod.container else pod.called for pod in pods[:3]]
    more = f" and {len(pods) - 3} more" if len(pods) > 3 else ""
    return ", ".join(named) + more
