"""Failed starts: attempts that end before they are ready, and the delay before the next attempt.

A failed start is the fault of the job or of its image, not of the tier: it does not count as a failure of the tier.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.backoff import delay
from spotladder.core.model import (
    Attempt,
    AttemptSeen,
    Exhausted,
    Exit,
    FailedStarts,
    Instant,
    JobSpec,
    JobState,
    PodPhase,
    PodRole,
    PodSeen,
    Seconds,
)
from spotladder.core.reasons import Cause, Reason

FIRST_BACKOFF: Seconds = 10.0
LONGEST_BACKOFF: Seconds = 300.0
"""The delay before the next attempt doubles from the first to the longest, as in the kubelet's CrashLoopBackOff."""

CRASH_LIMIT = 6
"""After this many consecutive identical failed starts the job fails or waits, depending on `exhausted`."""

FAILED_STARTS = frozenset({Reason.START_CRASHED, Reason.START_TIMEOUT})
_LOST_STARTS = frozenset({Reason.HEAD_LOST, Reason.VANISHED, Reason.INTERRUPTED})
"""End reasons with a counted loss: the first new attempt starts at once, as after any loss."""

_OWN_FAULT = frozenset({Cause.APP_ERROR, Cause.OOM_KILLED})


def crashed_pods(attempt: Attempt, seen: AttemptSeen) -> list[PodSeen]:
    """Pods whose container ended by its own fault before the attempt was ever ready. The end of a program counts only
    while other workers have not started: it may have waited for them in vain (no address, a rendezvous that timed
    out)."""
    if attempt.running_at is not None or seen.exit not in (None, Exit.FAILED):
        return []
    crashed = [pod for pod in seen.pods if pod.phase is PodPhase.LOST and pod.cause in _OWN_FAULT]
    missing = sum(pod.phase is PodPhase.PENDING and pod.role is PodRole.WORKER for pod in seen.pods)
    return crashed if seen.exit is None or missing > len(crashed) else []


def crash_of(pod: PodSeen) -> str:
    """A description of the crash that is equal for equal crashes."""
    code = "" if pod.exit_code is None else f" with exit code {pod.exit_code}"
    return f"{f'container {pod.container} of ' if pod.container else ''}the {pod.role} ended{code} ({pod.cause})"


def forgotten(state: JobState) -> JobState:
    """The state after an attempt was ready, or after the user changed or suspended the job."""
    return replace(state, failed_starts=FailedStarts())


def ended_unready(state: JobState, attempt: Attempt, spec: JobSpec, reason: Reason, now: Instant) -> JobState:
    """The state when the live attempt ends for `reason` before it was ever ready, with the delay before the next
    attempt."""
    if reason not in FAILED_STARTS | _LOST_STARTS:
        return state
    failed = replace(state.failed_starts, unready=state.failed_starts.unready + 1, template=attempt.template)
    state = replace(state, failed_starts=failed)
    doublings = failed.unready - (1 if reason in FAILED_STARTS else 2)
    if doublings < 0:
        return state
    pause = backoff(doublings)
    if failed.crashes >= CRASH_LIMIT and spec.exhausted is Exhausted.WAIT:
        pause = max(pause, *(tier.provision_timeout for tier in spec.tiers))
    return replace(state, timers=replace(state.timers, paused_until=now + pause))


def corrected(state: JobState, spec: JobSpec) -> bool:
    """Whether the job pauses after failed starts and its pod template has changed since: the user may have fixed it."""
    tier = spec.tier(state.tier)
    return bool(state.failed_starts.unready) and tier is not None and tier.template != state.failed_starts.template


def backoff(doublings: int) -> Seconds:
    """The delay before the next attempt after this number of doublings."""
    return delay(FIRST_BACKOFF, LONGEST_BACKOFF, doublings + 1, jitter=1.0)


def crash_message(state: JobState) -> str:
    """The failed starts in one sentence; "" if there were none."""
    if not state.failed_starts.crashes:
        return ""
    times = "" if state.failed_starts.crashes == 1 else f", {state.failed_starts.crashes} times in succession"
    output = f": {state.failed_starts.output}" if state.failed_starts.output else ""
    return f"{state.failed_starts.crash} before the attempt was ready{times}{output}"
