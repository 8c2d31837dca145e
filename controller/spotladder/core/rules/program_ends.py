"""Rules for an attempt that has ended by itself: its program exited, its head or all of its pods are gone, or its
admission queue took its quota back.

A program that ended, and a queue that ended its pods, explain what else is observed: the rules after them see neither.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.changes.changing import counted
from spotladder.core.diagnosis.evidence import program_ended
from spotladder.core.diagnosis.silence import silenced
from spotladder.core.diagnosis.verdict import Outcome, finished, judge
from spotladder.core.facts.queueing import EVICTION_REASONS, taken_back
from spotladder.core.history.bad_nodes import fails_again, with_node_failures
from spotladder.core.history.crashes import backoff, crash_of, crashed_pods
from spotladder.core.history.losses import counted_pods, head_lost, noticed_pods, suspect_pods, synthetic
from spotladder.core.history.pacing import paced
from spotladder.core.model import AttemptSeen, Exit, PodRole, QueueEviction, StoreRefusals
from spotladder.core.reasons import Cause, Reason
from spotladder.core.rules.effect import Effect, ended, ended_by_limit, ended_by_loss
from spotladder.core.rules.failed_starts import start_failed
from spotladder.core.situation import Situation


def vanished_attempt(situation: Situation) -> Effect | None:
    """A person or another controller has deleted the objects of the attempt: it ends with one failure."""
    attempt = situation.attempt
    if situation.attempt_seen is not None or not attempt.seen or not situation.reachable:
        return None
    lost = synthetic(attempt, "vanished", Cause.UNKNOWN, "its objects, which were deleted")
    return ended_by_loss(situation, Reason.VANISHED, lost)


def withdrawn_quota(situation: Situation) -> Effect | None:
    """The admission queue has taken the quota of the attempt back: it ends, and the next attempt joins the queue. It is
    no failure, unless another controller suspended the attempt."""
    seen = situation.attempt_seen
    eviction = taken_back(situation) if seen is not None and seen.exit is not Exit.FENCED else None
    if eviction is None or finished(situation) is not None:
        return None
    message = seen.queue.message if seen is not None and seen.queue is not None else ""
    if eviction is QueueEviction.SUSPENDED:
        lost = synthetic(situation.attempt, "lost", Cause.UNKNOWN, "its pods")
        return ended_by_loss(situation, Reason.HEAD_LOST, lost, message)
    return Effect(situation, EVICTION_REASONS[eviction], message)


def program_exit(situation: Situation) -> Effect | None:
    """The program has exited: the job succeeds or fails, or the attempt ends, according to the verdict. A fence, and a
    store that refuses the credentials or is unsafe, are not failures of the tier."""
    seen = situation.attempt_seen
    if seen is None or seen.exit is None or _ended_by_queue(situation, seen.exit):
        return None
    if crashed_pods(situation.attempt, seen):
        return None  # Its peers had not started: a failed start.
    match seen.exit:
        case Exit.FENCED if situation.foreign_owner:
            return fenced_job(situation)
        case Exit.FENCED:
            return Effect(situation, Reason.INTERRUPTED, "a newer writer has fenced it")
        case Exit.REFUSED:
            return _denied(situation, Reason.ACCESS_DENIED, seen.message)
        case Exit.UNSAFE:
            message = seen.message or "the checkpoint store cannot fence an attempt that was cut off"
            return _denied(situation, Reason.STORE_UNSAFE, message)
        case Exit.LOST:
            lost = synthetic(situation.attempt, "lost", Cause.UNKNOWN, "its pods")
            return ended_by_loss(situation, Reason.HEAD_LOST, lost, seen.message)
    return _judged(situation, seen, seen.exit)


def fenced_job(situation: Situation) -> Effect:
    """The job fails because another controller's attempt has fenced it."""
    owner = situation.seen.progress.attempt
    return Effect(situation, Reason.FENCED, f"attempt {owner} of another controller owns the commit log")


def _ended_by_queue(situation: Situation, how: Exit | None) -> bool:
    """Whether the queue that holds the attempt has ended its pods, so that the attempt waits for quota."""
    return situation.held_by is not None and how in (None, Exit.LOST, Exit.INTERRUPTED)


def _denied(situation: Situation, reason: Reason, message: str) -> Effect:
    """The end of an attempt that could not use the checkpoint store: the next one tries again after a delay."""
    state, before = situation.state, situation.state.refusals.number
    timers = replace(state.timers, paused_until=situation.now + backoff(before))
    state = replace(state, refusals=StoreRefusals(before + 1, message), timers=timers)
    return Effect(replace(situation, state=state), reason, message)


def _judged(situation: Situation, seen: AttemptSeen, how: Exit) -> Effect:
    """The end according to the verdict about the program; not before there is one."""
    found, attempt = judge(situation), situation.attempt
    if how is not Exit.INTERRUPTED:
        situation = counted(situation, noticed_pods(attempt, seen))
        situation = counted(situation, suspect_pods(situation.attempt, seen))
    match found.outcome if found is not None else Outcome.UNKNOWN:
        case Outcome.FINISHED:
            return Effect(situation, Reason.COMPLETED)
        case Outcome.INTERRUPTED if how is Exit.FAILED:
            return ended(situation, Reason.INTERRUPTED, seen.message)
        case Outcome.INTERRUPTED:
            message = found.message if found is not None and how is Exit.SUCCEEDED else ""
            return _interrupted(situation, seen, message)
        case Outcome.FAILED:
            failed = situation.state.application_failures + 1
            situation = replace(situation, state=replace(situation.state, application_failures=failed))
            over = failed > situation.spec.application_failures
            return Effect(situation, Reason.APPLICATION_FAILED if over else Reason.APPLICATION_RETRY, seen.message)
    return Effect(situation)


def _interrupted(situation: Situation, seen: AttemptSeen, message: str) -> Effect:
    """The end after exit code 75, or an exit code that hides it: after a notice, a loss or a deletion, or on the
    program's own initiative."""
    attempt, noticed = situation.attempt, noticed_pods(situation.attempt, seen)
    known = counted_pods(attempt, seen)
    deleted = any(pod.cause is Cause.DELETED and pod.uid not in known for pod in seen.pods)
    if situation.outlived_loss and not noticed and not deleted:
        return ended(situation, Reason.INTERRUPTED, message or "a pod that was counted as lost has ended")
    if not noticed and not deleted and not situation.state.loss_counted:
        state = paced(situation.state, attempt, situation.seen.progress, situation.now)
        situation = replace(situation, state=state)
    situation = counted(situation, noticed)
    cause = Cause.DELETED if deleted else Cause.INTERRUPTION
    lost = synthetic(attempt, "interrupted", cause, "its program, which was interrupted")
    return ended_by_loss(situation, Reason.INTERRUPTED, lost, message)


def _running(situation: Situation) -> AttemptSeen | None:
    """The attempt as observed, while its program has not ended and no queue has ended its pods."""
    seen = situation.attempt_seen
    return seen if seen is not None and seen.exit is None and not _ended_by_queue(situation, None) else None


def crashed_start(situation: Situation) -> Effect | None:
    """A container ended by its own fault before the attempt was ready: the attempt ends, and the job after several
    starts that failed in the same way."""
    seen = situation.attempt_seen
    free = seen is not None and not _ended_by_queue(situation, seen.exit)
    crashed = crashed_pods(situation.attempt, seen) if seen is not None and free else []
    if not crashed:
        return None
    situation = replace(situation, state=with_node_failures(situation.state, crashed))
    pod = min(crashed, key=lambda pod: (pod.role is not PodRole.HEAD, pod.uid))
    return start_failed(situation, Reason.START_CRASHED, crash_of(pod), pod.exit_message, pod.called)


def lost_head(situation: Situation) -> Effect | None:
    """The head is lost for good, so that only a new attempt can run the program: the attempt ends with one failure."""
    seen = _running(situation)
    if seen is None or not head_lost(seen):
        return None
    lost = synthetic(situation.attempt, "head", Cause.UNKNOWN, "its head")
    return ended_by_loss(situation, Reason.HEAD_LOST, lost)


def silent_nodes(situation: Situation) -> Effect | None:
    """The nodes of the head or of all pods are silent and the program's heartbeats have stopped: the attempt ends, and
    these pods are failures."""
    suspects = silenced(situation) if _running(situation) is not None else []
    if not suspects:
        return None
    head = any(pod.role is PodRole.HEAD for pod in suspects)
    nodes = ", ".join(sorted({pod.node for pod in suspects if pod.node}))
    message = f"no heartbeat, and no answer from node {nodes}"
    return ended(counted(situation, suspects), Reason.HEAD_LOST if head else Reason.INTERRUPTED, message)


def exceeded_failures(situation: Situation) -> Effect | None:
    """A counted loss exceeds `maxFailures` of the tier or the job's `backoffLimit`: the attempt ends."""
    if not situation.changes.losses or _running(situation) is None:
        return None
    return ended_by_limit(situation)


def bad_node(situation: Situation) -> Effect | None:
    """A pod was lost again on a node on which pods of the job fail repeatedly: the attempt ends without a failure, and
    the next one avoids the node."""
    seen, losses = _running(situation), situation.changes.losses
    if seen is None or not losses:
        return None
    counted = situation.attempt.known.lost[-len(losses) :]
    node = fails_again(situation.state, [pod for pod in seen.pods if pod.uid in counted])
    return ended(situation, Reason.INTERRUPTED, f"pods fail repeatedly on node {node}") if node else None


def unexplained_end(situation: Situation) -> Effect | None:
    """The program has ended, and a loss that explains it may still be observed: the job waits for the end of the
    failure attribution window."""
    return Effect(situation, waits=True) if program_ended(situation) else None
