"""The delay before the next attempt of a program that exits as interrupted (exit code 75) without an interruption."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from spotladder.core.history.crashes import backoff
from spotladder.core.model import Attempt, Instant, JobState, Progress
from spotladder.core.reasons import Reason

_BY_ITSELF = (Reason.INTERRUPTED, Reason.MAX_FAILURES_EXCEEDED)


def paced(state: JobState, attempt: Attempt, progress: Progress, now: Instant) -> JobState:
    """The state with a pause before the next attempt if this one ends with exit code 75 without a notice, a loss or
    its own commit. There is no pause after the first such attempt; later pauses are those of `crashes.backoff`. The
    count includes the job's attempts since the last one that committed."""
    if progress.step > attempt.start_step:
        return state
    before = takewhile(lambda record: record.end_step <= record.start_step, reversed(state.history))
    repeated = sum(1 for record in before if record.reason in _BY_ITSELF)
    if not repeated:
        return state
    return replace(state, timers=replace(state.timers, paused_until=now + backoff(repeated - 1)))


def pause_message(state: JobState) -> str:
    """Why a job pauses because of `paced`; "" for any other pause."""
    last = state.history[-1] if state.history else None
    if last is None or not state.tier or state.failed_starts.unready or last.reason not in _BY_ITSELF:
        return ""
    if last.end_step > last.start_step:
        return ""
    return "attempts end with exit code 75 in succession, without a notice, a lost node or a commit: the next one waits"
