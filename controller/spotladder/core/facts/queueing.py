"""Admission queues (Kueue): whether the live attempt has lost its quota, and for which reason it then ends.

A queue that readmits an attempt runs its program again under the same attempt number while the earlier pods may still
write. So an attempt that has run ends when its quota is withdrawn, and the next attempt joins the queue.
"""

from __future__ import annotations

from spotladder.core.model import QueueEviction
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation

EVICTION_REASONS = {
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
    has_run = attempt.running_at is not None or bool(attempt.known.alive)
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
