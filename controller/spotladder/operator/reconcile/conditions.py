"""Computes the conditions of a TieredJob from a decision and the job's problems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from spotladder.api.status import Condition
from spotladder.core.acting import steady_reason
from spotladder.core.diagnosis.evidence import program_ended
from spotladder.core.diagnosis.impediment import classify
from spotladder.core.diagnosis.verdict import without_library
from spotladder.core.explanation import explain
from spotladder.core.facts import limits
from spotladder.core.facts.deadline_risk import deadline_risk
from spotladder.core.history.crashes import crash_message
from spotladder.core.model import TERMINAL, Decision, JobSpec, JobState, Observation, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import READY, Situation
from spotladder.errors import described
from spotladder.operator.condition_types import (
    DELETE_REQUESTED,
    ConditionReason,
    ConditionType,
    ConditionUpdate,
    ConditionUpdates,
    Diagnosis,
    stated,
)
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile.preflight import Ahead
from spotladder.output.redact import redacted
from spotladder.timestamps import utc_timestamp

LONGEST_ERROR = 200
"""Maximum number of characters of an unexpected error in a condition."""

_ADDRESS = re.compile(r"\b0x[0-9a-f]+\b")
"""The address of an object in an error's text. It differs each time, and the condition would be written again."""

ENDED = "Ended"
END_REFUSED = "EndRefused"


def is_ended(held: Sequence[Condition]) -> bool:
    """Whether the outcome was recorded in the log, or the log refused the record."""
    return any(entry.type == ConditionType.CHECKPOINTING and entry.reason in (ENDED, END_REFUSED) for entry in held)


def not_read(state: JobState) -> str:
    """The sentence that the newest known step may not be the last."""
    return f"step {state.progress.step} is the newest that was read, and there may be a later one"


def of_error(error: Exception) -> Diagnosis:
    """An unexpected error of a reconcile, without secrets."""
    text = redacted(_ADDRESS.sub("0x…", described(error)))
    shown = text if len(text) <= LONGEST_ERROR else f"{text[: LONGEST_ERROR - 1]}…"
    message = f"the controller has failed with an unexpected error and retries: {shown}: see its log, and report it"
    return Diagnosis(ConditionReason.RECONCILE_ERROR, message)


def of_validity(problem: Diagnosis | None) -> ConditionUpdates:
    """The updates of the condition Valid and, without which the job cannot continue, Stalled."""
    if problem is None:
        return {ConditionType.VALID: ConditionUpdate("True", "Valid")}
    return {
        ConditionType.VALID: ConditionUpdate("False", problem.reason, problem.message),
        ConditionType.STALLED: ConditionUpdate("True", problem.reason, problem.message),
    }


def of_correction(held: Sequence[Condition]) -> ConditionUpdates:
    """The updates of a job that is held, but not for its spec: an invalid spec has been corrected."""
    if not any((entry.type, entry.status) == (ConditionType.VALID, "False") for entry in held):
        return {}
    return {**of_validity(None), ConditionType.STALLED: ConditionUpdate("False", "AsExpected")}


def of_diagnoses(problems: Sequence[Diagnosis]) -> ConditionUpdates:
    """The update of the Degraded condition."""
    if not problems:
        return {ConditionType.DEGRADED: ConditionUpdate("False", "AsExpected")}
    message = "; ".join(problem.message for problem in problems)
    return {ConditionType.DEGRADED: ConditionUpdate("True", problems[0].reason, message)}


def with_impediment(
    problems: Sequence[Diagnosis], spec: JobSpec, state: JobState, seen: Observation
) -> list[Diagnosis]:
    """The problems, and the job's impediment if it degrades the job and is not one of them."""
    found = classify(Situation(spec, state, seen, state.clock))
    known = {problem.message for problem in problems}
    more = []
    if found is not None and found.rule.degraded and found.message not in known:
        more.append(Diagnosis(found.rule.reason, found.message))
    if state.stage in (Stage.STARTING, Stage.ENDING) and (crashes := crash_message(state)):
        more.append(Diagnosis(Reason.CRASH_LOOP, crashes))
    return [*more, *problems]


def of_preflight(ahead: Ahead | None) -> ConditionUpdates:
    """The update of the Preflight condition; None while the check is pending. A version conflict is a warning."""
    if ahead is None:
        return {}
    message = "; ".join(filter(None, (ahead.missing, ahead.conflicts)))
    reason = ConditionReason.REFERENCES_MISSING if ahead.missing else ConditionReason.VERSION_CONFLICT
    return {ConditionType.PREFLIGHT: stated(not message, reason if message else "AllFound", message)}


def of_decision(
    spec: JobSpec,
    decision: Decision,
    seen: Observation,
    reading: Reading,
    *,
    deleting: bool = False,
    held: Sequence[Condition] = (),
) -> ConditionUpdates:
    """The updates of the conditions `held` that follow from the stage of the job. Conditions without an update stay
    unchanged."""
    state = decision.state
    situation = Situation(spec, state, seen, state.clock)
    # Not the decision's reason: it changes with the next decision, and a write only for that is not worthwhile.
    waits_for = steady_reason(situation)
    why = state.reason if waits_for is Reason.STEADY else waits_for
    running = state.stage in (Stage.RUNNING, Stage.REPLACING, Stage.RECOVERING)
    updates = {
        ConditionType.READY: stated(running or state.stage is Stage.SUCCEEDED, state.phase),
        ConditionType.STALLED: ConditionUpdate("True", state.reason, state.message)
        if state.stage is Stage.FAILED
        else ConditionUpdate("False", "AsExpected"),
        ConditionType.PROVISIONED: stated(running, _asked(why, deleting), _provisioned(spec, state, seen)),
        ConditionType.RUNNING: stated(running, _asked(state.reason, deleting), state.message),
    }
    if ended := program_ended(situation):
        until = situation.attribution_deadline or state.clock
        text = f"{ended} (until {datetime.fromtimestamp(int(until), UTC):%H:%M:%S} UTC)"
        updates[ConditionType.RUNNING] = ConditionUpdate("False", Reason.PROGRAM_ENDED, text)
    if state.stage in TERMINAL:
        nothing = "" if state.progress.committed_at is not None else "nothing was committed"
        message = "; ".join(filter(None, (state.message, nothing)))
        updates[ConditionType.COMPLETED] = ConditionUpdate("True", state.reason, message)
    if decision.losses:
        pods = ", ".join(loss.pod for loss in decision.losses)
        updates[ConditionType.EVICTED] = ConditionUpdate("True", decision.losses[-1].cause, pods)
    elif state.stage is Stage.RUNNING and not state.loss_counted:
        updates[ConditionType.EVICTED] = ConditionUpdate("False", "Whole")
    if spec.tiers and state.tier:
        first = spec.tiers[0].name
        away = state.tier != first
        reason = state.record(first).exhausted_by or ("AfterFirstTier" if away else "OnFirstTier")
        updates[ConditionType.FELL_BACK] = stated(away, reason, state.tier)
    if state.attempt is not None:
        updates[ConditionType.UPDATED] = _updated(situation)
    if (risk := deadline_risk(spec, state)) is not None:
        updates[ConditionType.DEADLINE_AT_RISK] = stated(risk.at_risk, risk.reason, risk.message)
    elif state.stage in TERMINAL and limits.deadline(spec) is not None:
        updates[ConditionType.DEADLINE_AT_RISK] = ConditionUpdate("False", "Ended")
    elif limits.deadline(spec) is None and any(one.type == ConditionType.DEADLINE_AT_RISK for one in held):
        updates[ConditionType.DEADLINE_AT_RISK] = ConditionUpdate("False", "NoDeadline")
    if state.stage not in TERMINAL:
        updates[ConditionType.CHECKPOINTING] = _checkpointing(situation, reading)
    elif decision.moves:  # `Finish` reads the log after the end.
        text = f"the commit log has not been read since the end: {not_read(state)}"
        updates[ConditionType.CHECKPOINTING] = ConditionUpdate("Unknown", "EndNotRead", text)
    return updates


def _asked(reason: Reason, deleting: bool) -> str:
    return DELETE_REQUESTED if deleting and reason is Reason.SUSPEND_REQUESTED else reason


def _provisioned(spec: JobSpec, state: JobState, seen: Observation) -> str:
    """Why the job waits, the start of the wait, and the next step with its time; otherwise the last transition."""
    waits = explain(Situation(spec, state, seen, state.clock))
    if waits is None:
        return state.message
    if waits.until is None:
        return f"{waits.message} (since {utc_timestamp(waits.since)})"
    ends = utc_timestamp(waits.until)
    return f"{waits.message} (since {utc_timestamp(waits.since)}; {waits.timer} ends {ends}: {waits.then})"


def _updated(situation: Situation) -> ConditionUpdate:
    if not (pending := situation.pending_update):
        return ConditionUpdate("True", "UpToDate")
    if situation.attempt.ending.reason is not None:
        return ConditionUpdate("False", "Replacing", f"{pending}: the next attempt starts with the new pods")
    standby = situation.state.standby.attempt
    if standby is not None and situation.state.standby.reason is Reason.SPEC_UPDATED:
        effect = f"attempt {standby.number} with the new pods starts beside attempt {situation.attempt.number}"
        return ConditionUpdate("False", "Replacing", f"{pending}: {effect}")
    effect = f"the next attempt starts with the new pods (updateStrategy {situation.spec.update_strategy})"
    return ConditionUpdate("False", "PendingNextAttempt", f"{pending}: {effect}")


def _checkpointing(situation: Situation, reading: Reading) -> ConditionUpdate:
    state, seen = situation.state, situation.seen
    if reading.unreadable:
        return ConditionUpdate("Unknown", ConditionReason.CHECKPOINTS_UNREADABLE, reading.unreadable)
    if seen.progress.committed_at is None:
        unused = without_library(situation) if state.stage in READY else ""
        return ConditionUpdate("False", "NoStartEntry" if unused else "NothingCommitted", unused)
    skipped = f"; {seen.progress.skipped}" if seen.progress.skipped else ""
    return ConditionUpdate("True", "Committed", f"step {state.progress.step}{skipped}")
