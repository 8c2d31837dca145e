"""Admission queues (Kueue): the effect of a loss of quota on the live attempt, and the time limit of the wait for
quota.

A queue that readmits an attempt runs its program again under the same attempt number while the earlier pods may still
write. So an attempt that has run ends when its quota is withdrawn, and the next attempt joins the queue.
"""

from __future__ import annotations

from spotladder.core.draft import Draft
from spotladder.core.durations import format_duration
from spotladder.core.evidence import inadmissible, waits_for_quota
from spotladder.core.impediment import Timer, timer_of
from spotladder.core.losses import exhaust, synthetic
from spotladder.core.model import QueueEviction
from spotladder.core.reasons import Cause, Reason
from spotladder.core.situation import Situation

_REASONS = {
    QueueEviction.PREEMPTED: Reason.PREEMPTED,
    QueueEviction.PODS_READY_TIMEOUT: Reason.PODS_READY_TIMEOUT,
    QueueEviction.STOPPED: Reason.QUOTA_WITHDRAWN,
    QueueEviction.CHECK_FAILED: Reason.QUOTA_WITHDRAWN,
    QueueEviction.DEACTIVATED: Reason.QUOTA_WITHDRAWN,
}
"""Evictions by the queue or its administrator. They are not failures of the tier, which keeps its capacity: the next
attempt joins the queue, and queueTimeout limits its wait."""


def taken_back(situation: Situation) -> QueueEviction | None:
    """Why the live attempt lost its quota; None while it has quota or waits for its first quota."""
    attempt, seen = situation.attempt, situation.attempt_seen
    queue = seen.queue if seen is not None and seen.reachable else None
    if queue is None:
        return None
    has_run = attempt.running_at is not None or bool(attempt.known_pods)
    match queue.eviction:
        case None:
            return QueueEviction.PREEMPTED if queue.held and has_run else None
        case QueueEviction.DEACTIVATED:  # A pause: the next attempt would not be deactivated.
            return None if queue.held else queue.eviction
        case QueueEviction.SUSPENDED:
            return queue.eviction if has_run else None
        case QueueEviction.CHECK_FAILED:  # The queue asks again for an attempt that has had no pods.
            return queue.eviction if queue.held and has_run else None
    return queue.eviction


def end_by_queue(draft: Draft, eviction: QueueEviction) -> None:
    """End the attempt because its quota is gone. Without a queue that took it back, that is a loss."""
    attempt, seen = draft.situation.attempt, draft.situation.attempt_seen
    message = seen.queue.message if seen is not None and seen.queue is not None else ""
    if eviction is QueueEviction.SUSPENDED:
        draft.end_by_loss(Reason.HEAD_LOST, synthetic(attempt, "lost", Cause.UNKNOWN), message)
    else:
        draft.move(_REASONS[eviction], message)


def queue_timed_out(draft: Draft) -> bool:
    """End the attempt, and exhaust its tier, if queueTimeout has expired."""
    situation, tier = draft.situation, draft.situation.tier
    if tier is None or tier.queue_timeout is None or timer_of(situation) is not Timer.QUEUE:
        return False
    if not situation.passed(situation.queue_deadline):
        return False
    why = inadmissible(situation) or waits_for_quota(situation)
    if not draft.choice.keeps_open:
        draft.state = exhaust(draft.state, tier.name, Reason.QUEUE_TIMEOUT)
    draft.move(Reason.QUEUE_TIMEOUT, f"no quota for {format_duration(tier.queue_timeout)}: {why}")
    return True
