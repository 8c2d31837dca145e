"""Ends a live attempt because of its program, a loss, a timer, a limit of the job, the user or the policy.

Each function makes at most one transition. It returns whether the attempt ended if the caller needs this.
"""

from __future__ import annotations

from spotladder.core import limits
from spotladder.core.availability import with_sightings
from spotladder.core.bad_nodes import named, with_node_failures, without_node_failures
from spotladder.core.copying import replace
from spotladder.core.crashes import CRASH_LIMIT, crash_message, crash_of, crashed_pods, with_denial, with_failed_start
from spotladder.core.draft import Draft
from spotladder.core.durations import format_duration
from spotladder.core.evidence import maintenance
from spotladder.core.impediment import Timer, classify, rule_of, timer_of
from spotladder.core.losses import counted_pods, exhaust, head_lost, noticed_pods, suspect_pods, synthetic
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Exhausted,
    Exit,
    OnInsufficientCapacity,
    PodRole,
    PodSeen,
    UpdateStrategy,
)
from spotladder.core.pacing import paced
from spotladder.core.queueing import end_by_queue, taken_back
from spotladder.core.reasons import Cause, Reason
from spotladder.core.silence import silenced
from spotladder.core.standing_by import PlannedMove, end_of_notice, forget_withdrawn, waits_for_standby
from spotladder.core.tier_view import view_of
from spotladder.core.verdict import Outcome, finished, judge

# --- the attempt ended by itself ---


def ended_by_itself(draft: Draft) -> bool:
    """End the attempt if its program ended, or if its head or all of its pods are gone."""
    attempt, seen = draft.situation.attempt, draft.situation.attempt_seen
    before = len(draft.moves)
    if seen is None:
        if attempt.seen and draft.situation.reachable:
            draft.end_by_loss(Reason.VANISHED, synthetic(attempt, "vanished", Cause.UNKNOWN))
    elif (
        seen.exit is not Exit.FENCED
        and (eviction := taken_back(draft.situation)) is not None
        and finished(draft.situation) is None
    ):
        end_by_queue(draft, eviction)
    elif draft.situation.held_by is not None and seen.exit in (None, Exit.LOST, Exit.INTERRUPTED):
        return False  # The queue has ended its pods: it waits for quota.
    elif seen.exit is not None:
        _exited(draft, attempt, seen, seen.exit)
    elif crashed := crashed_pods(attempt, seen):
        draft.state = with_node_failures(draft.state, crashed)
        pod = min(crashed, key=lambda pod: (pod.role is not PodRole.HEAD, pod.uid))
        _start_failed(draft, Reason.START_CRASHED, crash_of(pod), pod.exit_message, pod.called)
    elif head_lost(seen):
        draft.end_by_loss(Reason.HEAD_LOST, synthetic(attempt, "head", Cause.UNKNOWN))
    elif suspects := silenced(draft.situation):
        _silenced(draft, suspects)
    elif draft.losses:
        draft.end_if_exceeded()
    return len(draft.moves) > before


def _silenced(draft: Draft, suspects: list[PodSeen]) -> None:
    """End the attempt because its nodes are silent and its program's heartbeats have stopped."""
    draft.count(suspects)
    head = any(pod.role is PodRole.HEAD for pod in suspects)
    nodes = ", ".join(sorted({pod.node for pod in suspects if pod.node}))
    draft.end(Reason.HEAD_LOST if head else Reason.INTERRUPTED, f"no heartbeat, and no answer from node {nodes}")


def log_owner(draft: Draft) -> str:
    """The message when another controller's attempt has fenced the job."""
    return f"attempt {draft.seen.progress.attempt} of another controller owns the commit log"


def _exited(draft: Draft, attempt: Attempt, seen: AttemptSeen, how: Exit) -> None:
    """End the attempt because its program exited. A fence, and a store that refuses the credentials or is unsafe, are
    not failures of the tier."""
    match how:
        case Exit.FENCED if draft.situation.foreign_owner:
            draft.move(Reason.FENCED, log_owner(draft))
        case Exit.FENCED:
            draft.move(Reason.INTERRUPTED, "a newer writer has fenced it")
        case Exit.REFUSED:
            draft.state = with_denial(draft.state, seen.message, draft.now)
            draft.move(Reason.ACCESS_DENIED, seen.message)
        case Exit.UNSAFE:
            message = seen.message or "the checkpoint store cannot fence an attempt that was cut off"
            draft.state = with_denial(draft.state, message, draft.now)
            draft.move(Reason.STORE_UNSAFE, message)
        case Exit.LOST:
            draft.end_by_loss(Reason.HEAD_LOST, synthetic(attempt, "lost", Cause.UNKNOWN), seen.message)
        case Exit.SUCCEEDED | Exit.INTERRUPTED | Exit.FAILED:
            _judged(draft, attempt, seen, how)


def _judged(draft: Draft, attempt: Attempt, seen: AttemptSeen, how: Exit) -> None:
    """End the attempt according to the verdict about its program; not before there is one."""
    found = judge(draft.situation)
    if how is not Exit.INTERRUPTED:
        draft.count(noticed_pods(attempt, seen))
        draft.count(suspect_pods(draft.situation.attempt, seen))
    match found.outcome if found is not None else Outcome.UNKNOWN:
        case Outcome.FINISHED:
            draft.move(Reason.COMPLETED)
        case Outcome.INTERRUPTED if how is Exit.FAILED:
            draft.end(Reason.INTERRUPTED, seen.message)
        case Outcome.INTERRUPTED:
            _interrupted(draft, seen, found.message if found is not None and how is Exit.SUCCEEDED else "")
        case Outcome.FAILED:
            failed = draft.state.application_failures + 1
            draft.state = replace(draft.state, application_failures=failed)
            over = failed > draft.spec.application_failures
            draft.move(Reason.APPLICATION_FAILED if over else Reason.APPLICATION_RETRY, seen.message)


def _interrupted(draft: Draft, seen: AttemptSeen, message: str) -> None:
    """End the attempt after exit code 75, or an exit code that hides it: after a notice, a loss or a deletion, or on
    the program's own initiative."""
    attempt, noticed = draft.situation.attempt, noticed_pods(draft.situation.attempt, seen)
    counted = counted_pods(attempt, seen)
    deleted = any(pod.cause is Cause.DELETED and pod.uid not in counted for pod in seen.pods)
    if draft.situation.outlived_loss and not noticed and not deleted:
        return draft.end(Reason.INTERRUPTED, message or "a pod that was counted as lost has ended")
    if not noticed and not deleted and not draft.state.loss_counted:
        draft.state = paced(draft.state, attempt, draft.seen.progress, draft.now)
    draft.count(noticed)
    cause = Cause.DELETED if deleted else Cause.INTERRUPTION
    return draft.end_by_loss(Reason.INTERRUPTED, synthetic(attempt, "interrupted", cause), message)


# --- failed starts ---


def start_timed_out(draft: Draft) -> bool:
    """End the attempt if startTimeout has expired."""
    if timer_of(draft.situation) is not Timer.START or not draft.situation.passed(draft.situation.start_deadline):
        return False
    limit = format_duration(draft.spec.start_timeout)
    _start_failed(draft, Reason.START_TIMEOUT, f"every pod was placed, but the attempt was not ready within {limit}")
    return True


def _start_failed(draft: Draft, reason: Reason, crash: str, output: str = "", pod: str = "") -> None:
    """End the attempt, and the job after too many consecutive starts that failed in the same way."""
    draft.state = with_failed_start(draft.state, crash, output)
    if draft.state.crashes >= CRASH_LIMIT and draft.spec.exhausted is Exhausted.FAIL:
        draft.move(Reason.CRASH_LOOP, crash_message(draft.state))
        return
    draft.move(reason, ": ".join(filter(None, (pod, crash, output))))


# --- the attempt is healthy, but must not continue ---


def starts_elsewhere(draft: Draft, notices: list[PodSeen]) -> bool:
    """End an attempt that has not been ready yet if nodes are drained for maintenance only."""
    if not notices or draft.situation.notice_reason is not Reason.MAINTENANCE:
        return False
    draft.move(*leaves(draft, notices))
    return True


def leaves(draft: Draft, notices: list[PodSeen]) -> tuple[Reason, str]:
    """The reason and the message with which an attempt ends that does not survive these notices."""
    if draft.situation.notice_reason is Reason.MAINTENANCE:
        return Reason.MAINTENANCE, maintenance(draft.situation)
    return Reason.EVICTION_NOTICE, ", ".join(f"{pod.called} ({pod.cause})" for pod in notices)


def unwanted(draft: Draft) -> bool:
    """End the attempt if a limit of the job, the user or the policy requires it."""
    wish: tuple[Reason, str] | None = limits.reached(draft.situation)
    if wish is None and draft.spec.suspend:
        wish = (draft.spec.suspend_reason, "")
    if wish is None and draft.situation.tier is None:
        wish = (Reason.TIER_REMOVED, f"{draft.situation.attempt.tier} is no longer among the tiers")
    if wish is None:
        forget_withdrawn(draft)
        planned = end_of_notice(draft.situation) or _planned_move(draft)
        if waits_for_standby(draft, planned):
            return False
        wish = None if planned is None else (planned.reason, planned.message)
    if wish is not None:
        draft.move(*wish)
    return wish is not None


def _planned_move(draft: Draft) -> PlannedMove | None:
    """The move that a changed spec or the policy wants; None if the live attempt is to continue."""
    attempt = draft.situation.attempt
    if _updates_now(draft):
        return PlannedMove(attempt.tier, Reason.SPEC_UPDATED, draft.situation.pending_update)
    choice = draft.choose(live=True)
    if choice.tier is None or choice.tier not in draft.situation.open or choice.tier == attempt.tier:
        return None
    return PlannedMove(choice.tier, Reason.POLICY, f"{choice.tier} is preferred ({choice.why or choice.reason})")


def _updates_now(draft: Draft) -> bool:
    """Whether a spec with another pod template ends the live attempt at once: an attempt that never ran
    loses no work."""
    if not (draft.situation.pending_update and draft.situation.reachable):
        return False
    never_ran = draft.situation.attempt.running_at is None
    return never_ran or draft.spec.update_strategy is UpdateStrategy.NOW


# --- timers of an attempt that does not train ---


def stalled(draft: Draft) -> None:
    """End the attempt if its program hangs, or if stallTimeout has expired."""
    found, seen = judge(draft.situation), draft.situation.attempt_seen
    if found is None or found.outcome is not Outcome.HANGS:
        return
    if seen is not None and seen.hung:
        draft.state = replace(draft.state, hangs=draft.state.hangs + 1)
    draft.count([synthetic(draft.situation.attempt, "stalled", Cause.STALLED)])
    draft.end(Reason.STALLED, found.message)


def recovery_timed_out(draft: Draft) -> None:
    """End the attempt if recoveryTimeout has expired, unless it waits for capacity, where provisionTimeout applies, or
    for quota."""
    since = draft.state.recovering_since
    if since is None or not draft.situation.passed(draft.situation.recovery_deadline):
        return
    if not draft.situation.reachable or draft.situation.held_by is not None or draft.situation.waits_for_capacity:
        return
    if not draft.state.loss_counted:
        draft.count([synthetic(draft.situation.attempt, f"recovery-{since:.3f}", Cause.UNKNOWN)])
    draft.end(Reason.RECOVERY_TIMEOUT, f"not all workers ready again within {draft.spec.recovery_timeout:g} s")


def provision_timed_out(draft: Draft) -> None:
    """End the attempt if provisionTimeout has expired; it runs from the moment at which not all workers are ready.

    An attempt that avoids nodes gives no evidence about the capacity of its tier: it ends earlier if no other node can
    take its pods, and the next attempt runs on the same tier and avoids none. A pod that fits no node of the tier
    shows nothing about its capacity, and exhausts it whatever the policy prefers.
    """
    tier, seen, since = draft.situation.tier, draft.situation.attempt_seen, draft.state.waiting_since
    rule = rule_of(draft.situation)
    if tier is None or since is None or rule is None or rule.timer is not Timer.PROVISION:
        return
    refused = draft.situation.refused and tier.on_insufficient_capacity is OnInsufficientCapacity.FALLBACK
    avoids = draft.situation.attempt.avoids if rule.exhausts else ()
    expired = draft.situation.passed(draft.situation.avoidance_deadline if avoids else None)
    if not refused and not expired and not draft.situation.passed(draft.situation.provision_deadline):
        return
    if seen is None and draft.seen.launched:
        return  # no operator has acted on it yet: that is not capacity, and `operator_silent` soon says so
    if avoids:
        why = f"no capacity without the avoided nodes {named(avoids, draft.state)}: the next attempt may use them"
        draft.state = replace(without_node_failures(draft.state), waiting_since=None)
        draft.move(Reason.INSUFFICIENT_CAPACITY, why)
    elif rule.reason is Reason.POD_DOES_NOT_FIT:
        why = _impediment_message(draft)
        draft.state = exhaust(replace(draft.state, misfit=why), tier.name, rule.reason)
        draft.move(rule.reason, why)
    elif rule.exhausts:
        draft.state = with_sightings(draft.state, {tier.name: False}, draft.now)
        why = _impediment_message(draft) if refused else f"not all workers ready for {tier.provision_timeout:g} s"
        if draft.choice.keeps_open:
            draft.state = replace(draft.state, waiting_since=None)
        else:
            draft.state = exhaust(draft.state, tier.name, Reason.INSUFFICIENT_CAPACITY)
        draft.move(Reason.INSUFFICIENT_CAPACITY, why)
    elif rule.counted and draft.situation.attempt.seen:
        lost = synthetic(draft.situation.attempt, "contact", Cause.NODE_LOST)
        draft.end_by_loss(rule.reason, lost, _impediment_message(draft))
    elif _has_other_tier(draft):
        draft.move(rule.reason, _impediment_message(draft))


def _impediment_message(draft: Draft) -> str:
    found = classify(draft.situation)
    return found.message if found is not None else ""


def _has_other_tier(draft: Draft) -> bool:
    """Whether the policy chooses another available tier for an attempt that cannot be launched on its own."""
    view = view_of(draft.situation, live=False)
    choice = draft.policy.choose(view)
    return choice.tier in view.available and choice.tier != draft.state.tier
