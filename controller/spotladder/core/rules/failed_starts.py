"""Rules for a start that fails although every pod has its node."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.diagnosis.impediment import Timer, timer_of
from spotladder.core.durations import format_duration
from spotladder.core.history.crashes import CRASH_LIMIT, crash_message
from spotladder.core.model import Exhausted
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect
from spotladder.core.situation import Situation


def start_timeout(situation: Situation) -> Effect | None:
    """Every pod has had its node and image for `startTimeout`, and the attempt is not ready: it ends."""
    if timer_of(situation) is not Timer.START or not situation.passed(situation.start_deadline):
        return None
    limit = format_duration(situation.spec.start_timeout)
    crash = f"every pod was placed, but the attempt was not ready within {limit}"
    return start_failed(situation, Reason.START_TIMEOUT, crash)


def start_failed(situation: Situation, reason: Reason, crash: str, output: str = "", pod: str = "") -> Effect:
    """The attempt ends, and the job after too many consecutive starts that failed in the same way."""
    failed = situation.state.failed_starts
    failed = replace(failed, crashes=failed.crashes + 1 if crash == failed.crash else 1, crash=crash, output=output)
    situation = replace(situation, state=replace(situation.state, failed_starts=failed))
    if failed.crashes >= CRASH_LIMIT and situation.spec.exhausted is Exhausted.FAIL:
        return Effect(situation, Reason.CRASH_LOOP, crash_message(situation.state))
    return Effect(situation, reason, ": ".join(filter(None, (pod, crash, output))))
