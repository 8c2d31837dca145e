"""The state machine of a job: which stage may follow which, and for which reasons. Every change of stage uses this
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spotladder.core.model import Stage
from spotladder.core.reasons import Reason
from spotladder.errors import IllegalTransition

_BEGINNING: Mapping[Reason, Stage] = {
    Reason.STARTED: Stage.STARTING,
    Reason.FELL_BACK: Stage.STARTING,
    Reason.MIGRATED_BACK: Stage.STARTING,
    Reason.BEGIN_AGAIN: Stage.IDLE,
    Reason.WAITING_TO_BEGIN_AGAIN: Stage.IDLE,
    Reason.SUSPEND_REQUESTED: Stage.SUSPENDED,
    Reason.STOP_REQUESTED: Stage.SUSPENDED,
    Reason.TIERS_EXHAUSTED: Stage.FAILED,
    Reason.POD_DOES_NOT_FIT: Stage.FAILED,
    Reason.BACKOFF_LIMIT_EXCEEDED: Stage.FAILED,
    Reason.DEADLINE_EXCEEDED: Stage.FAILED,
    Reason.BUDGET_EXCEEDED: Stage.FAILED,
    Reason.STORE_UNSAFE: Stage.FAILED,
}

# Reasons that end a live attempt at once: there is nothing left to commit, or no pod that could commit.
_LOST: Mapping[Reason, Stage] = {
    Reason.MAX_FAILURES_EXCEEDED: Stage.ENDING,
    Reason.BACKOFF_LIMIT_EXCEEDED: Stage.ENDING,
    Reason.HEAD_LOST: Stage.ENDING,
    Reason.VANISHED: Stage.ENDING,
    Reason.INTERRUPTED: Stage.ENDING,
    Reason.PREEMPTED: Stage.ENDING,
    Reason.PODS_READY_TIMEOUT: Stage.ENDING,
    Reason.QUOTA_WITHDRAWN: Stage.ENDING,
    Reason.ACCESS_DENIED: Stage.ENDING,
    Reason.STORE_UNSAFE: Stage.ENDING,
    Reason.APPLICATION_RETRY: Stage.ENDING,
    Reason.COMPLETED: Stage.SUCCEEDED,
    Reason.APPLICATION_FAILED: Stage.FAILED,
    Reason.FENCED: Stage.FAILED,
}

_WANTED = (
    Reason.SUSPEND_REQUESTED,
    Reason.STOP_REQUESTED,
    Reason.DEADLINE_EXCEEDED,
    Reason.BUDGET_EXCEEDED,
    Reason.TIER_REMOVED,
    Reason.POLICY,
    Reason.SPEC_UPDATED,
    Reason.MAINTENANCE,
)
# The same request drains a job with all workers ready and removes one without, which cannot commit.
_DRAIN: Mapping[Reason, Stage] = dict.fromkeys(_WANTED, Stage.DRAINING)
_REMOVE: Mapping[Reason, Stage] = dict.fromkeys(_WANTED, Stage.ENDING)

TRANSITIONS: Mapping[Stage, Mapping[Reason, Stage]] = MappingProxyType(
    {
        Stage.IDLE: _BEGINNING,
        Stage.STARTING: {
            Reason.ALL_READY: Stage.RUNNING,
            Reason.INSUFFICIENT_CAPACITY: Stage.ENDING,
            Reason.POD_DOES_NOT_FIT: Stage.ENDING,
            Reason.CLUSTER_UNREACHABLE: Stage.ENDING,
            Reason.HEDGED: Stage.ENDING,
            Reason.QUEUE_TIMEOUT: Stage.ENDING,
            Reason.START_CRASHED: Stage.ENDING,
            Reason.START_TIMEOUT: Stage.ENDING,
            Reason.CRASH_LOOP: Stage.FAILED,
            **_LOST,
            **_REMOVE,
        },
        Stage.RUNNING: {
            Reason.RECOVERING: Stage.RECOVERING,
            Reason.REPLACING: Stage.REPLACING,
            Reason.EVICTION_NOTICE: Stage.DRAINING,
            Reason.STALLED: Stage.ENDING,
            **_LOST,
            **_DRAIN,
        },
        Stage.REPLACING: {
            Reason.HANDED_OVER: Stage.RUNNING,
            Reason.RECOVERING: Stage.RECOVERING,
            Reason.EVICTION_NOTICE: Stage.DRAINING,
            Reason.STALLED: Stage.ENDING,
            **_LOST,
            **_DRAIN,
        },
        Stage.RECOVERING: {
            Reason.ALL_READY: Stage.RUNNING,
            Reason.EVICTION_NOTICE: Stage.ENDING,
            Reason.HEDGED: Stage.ENDING,
            Reason.RECOVERY_TIMEOUT: Stage.ENDING,
            Reason.QUEUE_TIMEOUT: Stage.ENDING,
            Reason.INSUFFICIENT_CAPACITY: Stage.ENDING,
            Reason.POD_DOES_NOT_FIT: Stage.ENDING,
            Reason.CLUSTER_UNREACHABLE: Stage.ENDING,
            **_LOST,
            **_REMOVE,
        },
        Stage.DRAINING: {
            Reason.DRAINED: Stage.ENDING,
            Reason.GRACE_EXCEEDED: Stage.ENDING,
            Reason.COMPLETED: Stage.SUCCEEDED,
            Reason.FENCED: Stage.FAILED,
        },
        Stage.ENDING: {
            Reason.GONE: Stage.IDLE,
            Reason.MOVED_ON: Stage.IDLE,
            Reason.LEFT_BEHIND: Stage.IDLE,
            Reason.RELIEVED: Stage.IDLE,
            Reason.COMPLETED: Stage.SUCCEEDED,
        },
        Stage.SUSPENDED: {Reason.RESUME_REQUESTED: Stage.IDLE},
        Stage.SUCCEEDED: {},
        Stage.FAILED: {},
    }
)


def target(source: Stage, reason: Reason) -> Stage:
    """The stage that follows `source` for `reason`. Raises `IllegalTransition` if the table has none."""
    following = TRANSITIONS[source].get(reason)
    if following is None:
        raise IllegalTransition(
            f"a job that is {source} cannot move because of {reason}; the transition table has no such row"
        )
    return following
