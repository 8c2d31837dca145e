"""Describes each timeline record in one sentence, for the live view, the plain lines and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from spotladder.core.contract import ExitCode
from spotladder.core.facts.elastic import size_text
from spotladder.core.model import FOR_EVER, Instant, JobSpec, LeftAttempt, Move, Stage
from spotladder.core.reasons import Reason
from spotladder.display.figures import count, measure, numbered, span
from spotladder.records.model import (
    Began,
    Committed,
    DriverExited,
    Ended,
    Lost,
    Moved,
    NodeChange,
    NodeChanged,
    Noted,
    PoolChanged,
    Record,
    Resized,
    Specified,
    Waited,
)


class Tone(StrEnum):
    """The severity of a message."""

    QUIET = "quiet"  # as expected
    GOOD = "good"
    CAUTION = "caution"  # capacity will be lost, or the job must wait
    BAD = "bad"  # capacity or work was lost


@dataclass(frozen=True, slots=True)
class Sentence:
    """A timeline record as a sentence."""

    at: Instant
    tone: Tone
    text: str


def tolerated(max_failures: int) -> str:
    """The limit M in `failures n/M`."""
    return "∞" if max_failures == FOR_EVER else str(max_failures)


class Narrator:
    """Describes the records of one timeline in order. The end of a job does not repeat the reason of its last
    transition, and a changed spec is described if its workers or tiers have changed."""

    def __init__(self) -> None:
        self._last_reason = ""
        self._spec: JobSpec | None = None

    def describe(self, record: Record) -> Sentence | None:
        """The record as a sentence, or None if it has none."""
        before = self._spec
        if isinstance(record, Began | Specified):
            self._spec = record.spec
        if isinstance(record, Moved):
            self._last_reason = record.move.message
        elif isinstance(record, Ended):
            more = f"{record.message}; ".removeprefix(f"{self._last_reason}; ").removesuffix("; ")
            record = replace(record, message=more)
        text = _text_of(record, before)
        return Sentence(record.at, *text) if text else None


def plan_of(spec: JobSpec) -> str:
    """The workers and the tiers of a job: `2 workers on spot-a → on-demand`."""
    return f"{numbered(spec.workers, 'worker')} on {' → '.join(tier.name for tier in spec.tiers)}"


def _text_of(record: Record, spec: JobSpec | None) -> tuple[Tone, str] | None:
    match record:
        case Began() | Specified():
            return _say_plan(record, spec)
        case Moved():
            return _say_move(record.move)
        case Lost():
            return Tone.BAD, _say_loss(record, spec)
        case NodeChanged():
            return _say_node(record)
        case Resized():
            tone = Tone.GOOD if record.workers == record.wanted else Tone.CAUTION
            return tone, f"attempt {record.attempt} {size_text(record.workers, record.wanted, record.before)}"
        case PoolChanged():
            return _say_pool(record)
        case Committed():
            loss = record.metrics.get("loss")
            extra = f", loss {measure(loss)}" if loss is not None else ""
            return Tone.GOOD, f"committed step {count(record.step)}{extra}"
        case DriverExited(code=ExitCode.INTERRUPTED):
            return Tone.QUIET, f"attempt {record.attempt} has stopped and can be resumed (exit code {record.code})"
        case DriverExited(code=ExitCode.FENCED):
            return Tone.CAUTION, f"attempt {record.attempt} was fenced: a newer attempt owns the job"
        case Noted():
            return Tone.CAUTION if record.warning else Tone.QUIET, record.text
        case Waited():
            return (Tone.CAUTION, f"waits: {waiting_text(record, record.at)}") if record.message else None
        case Ended():
            tone = {0: Tone.GOOD, ExitCode.INTERRUPTED: Tone.CAUTION}.get(record.exit_code, Tone.BAD)
            resumable = record.reason is Reason.INTERRUPTED
            text = (
                "done"
                if record.exit_code == 0
                else "stopped, can be resumed"
                if resumable
                else f"failed: {record.reason}"
            )
            return tone, f"{text}: {record.message}" if record.message else text
    return None


def waiting_text(waited: Waited, now: Instant) -> str:
    """What the job waits for, for how long, and the timer with its effect."""
    since = f"for {span(now - waited.since)}"
    if waited.until is None:
        return f"{waited.message} ({since})"
    return f"{waited.message} ({since}; {waited.timer} in {span(waited.until - now)}: {waited.then})"


def removal_text(left: Iterable[LeftAttempt], now: Instant) -> str:
    """The attempts that are being removed, each with the time since it ended and the nodes that are still paid; "" for
    none."""
    return "; ".join(
        f"attempt {one.number} on {one.tier} is being removed ({span(now - one.since)}{_still_held(one)})"
        for one in left
    )


def _still_held(left: LeftAttempt) -> str:
    return f", {numbered(left.nodes, 'node')}" if left.nodes else ""


def _say_move(move: Move) -> tuple[Tone, str] | None:
    if move.reason in _SILENT:
        return None
    tone, sentence = _MOVES.get(move.reason, (Tone.BAD, _job))
    # The record of the loss already has the number of failures.
    if not move.message or move.reason is Reason.MAX_FAILURES_EXCEEDED:
        return tone, sentence(move)
    link = ": " if move.reason in _BEGINNINGS else " – "
    return tone, f"{sentence(move)}{link}{move.message}"


def _say_plan(record: Began | Specified, before: JobSpec | None) -> tuple[Tone, str] | None:
    plan = plan_of(record.spec)
    if isinstance(record, Began):
        return Tone.QUIET, f"{record.job} {'resumes' if record.resumed else 'begins'}: {plan}"
    return None if before is not None and plan == plan_of(before) else (Tone.QUIET, f"spec changed: {plan}")


def _say_loss(record: Lost, spec: JobSpec | None) -> str:
    loss = record.loss
    tier = spec.tier(loss.tier) if spec else None
    allowed = f" ({tolerated(tier.max_failures)} tolerated)" if tier else ""
    count = f", failure {record.failures} on {loss.tier}{allowed}" if record.failures else f" on {loss.tier}"
    return f"{'will lose' if loss.noticed else 'lost'} {loss.pod} ({loss.cause}){count}"


def _say_node(record: NodeChanged) -> tuple[Tone, str] | None:
    if record.change is NodeChange.NOTICED:
        when = f" in {span(record.until - record.at)}" if record.until is not None else ""
        cause = f" ({record.cause})" if record.cause else ""
        return Tone.CAUTION, f"{record.node} will be reclaimed{when}{cause}"
    # REQUESTED and UP: the attempt's start and its ready gang report them. GONE: the counted loss reports it.
    return None


def _say_pool(record: PoolChanged) -> tuple[Tone, str]:
    if record.available:
        return Tone.QUIET, f"{record.tier} has capacity again"
    return Tone.CAUTION, f"{record.tier} has no capacity"


def _leaves(move: Move) -> str:
    return f"leaves {move.tier}: {move.reason}"


def _ends(move: Move) -> str:
    verb = "drains" if move.target is Stage.DRAINING else "ends"
    return f"attempt {move.attempt} {verb}: {move.reason}"


def _stops(move: Move) -> str:
    return "is suspended" if move.target is Stage.SUSPENDED else f"is drained: {_ends(move)}"


def _ready(move: Move) -> str:
    return f"attempt {move.attempt} is ready" if move.message else f"attempt {move.attempt} has all workers ready"


def _job(move: Move) -> str:
    return f"job {move.target}: {move.reason}" if move.target in (Stage.SUCCEEDED, Stage.FAILED) else _ends(move)


_BEGINNINGS = frozenset(
    {Reason.STARTED, Reason.FELL_BACK, Reason.MIGRATED_BACK, Reason.BEGIN_AGAIN, Reason.WAITING_TO_BEGIN_AGAIN}
)
_SILENT = frozenset({Reason.GONE, Reason.MOVED_ON, Reason.DRAINED})
"""Reasons of moves that only carry out an earlier move, which has its own sentence."""

_MOVES: Mapping[Reason, tuple[Tone, Callable[[Move], str]]] = {
    Reason.STARTED: (Tone.QUIET, lambda _: "starts"),
    Reason.FELL_BACK: (Tone.CAUTION, lambda _: "falls back"),
    Reason.MIGRATED_BACK: (Tone.GOOD, lambda _: "migrates back"),
    Reason.WAITING_TO_BEGIN_AGAIN: (Tone.CAUTION, lambda _: "waits, then restarts at the first tier"),
    Reason.BEGIN_AGAIN: (Tone.CAUTION, lambda _: "restarts at the first tier"),
    Reason.ALL_READY: (Tone.GOOD, _ready),
    Reason.RECOVERING: (Tone.CAUTION, lambda move: f"attempt {move.attempt} waits for lost workers"),
    Reason.REPLACING: (Tone.CAUTION, lambda move: f"attempt {move.attempt} continues while replacements start"),
    Reason.HANDED_OVER: (Tone.GOOD, lambda move: f"attempt {move.attempt} continues with the replacements"),
    Reason.HEDGED: (Tone.GOOD, _ends),
    Reason.EVICTION_NOTICE: (Tone.CAUTION, _ends),
    Reason.INTERRUPTED: (Tone.CAUTION, _ends),
    Reason.MAX_FAILURES_EXCEEDED: (Tone.BAD, _leaves),
    Reason.INSUFFICIENT_CAPACITY: (Tone.BAD, _leaves),
    Reason.POD_DOES_NOT_FIT: (Tone.BAD, lambda move: _leaves(move) if move.target is Stage.ENDING else _job(move)),
    Reason.QUEUE_TIMEOUT: (Tone.BAD, _leaves),
    Reason.PREEMPTED: (Tone.CAUTION, _ends),
    Reason.QUOTA_WITHDRAWN: (Tone.CAUTION, _ends),
    Reason.TIER_REMOVED: (Tone.CAUTION, _leaves),
    Reason.POLICY: (Tone.CAUTION, _leaves),
    Reason.SPEC_UPDATED: (Tone.QUIET, _ends),
    Reason.MAINTENANCE: (Tone.CAUTION, _ends),
    Reason.GRACE_EXCEEDED: (Tone.BAD, lambda move: f"attempt {move.attempt} was killed: its grace period is over"),
    Reason.LEFT_BEHIND: (Tone.CAUTION, lambda move: f"attempt {move.attempt} is {move.message}"),
    Reason.RELIEVED: (Tone.QUIET, lambda move: f"attempt {move.attempt} has ended, and its standby takes over"),
    Reason.SUSPEND_REQUESTED: (Tone.CAUTION, _stops),
    Reason.STOP_REQUESTED: (Tone.CAUTION, _stops),
    Reason.RESUME_REQUESTED: (Tone.QUIET, lambda _: "is resumed"),
    Reason.COMPLETED: (Tone.GOOD, _job),
}
"""The tone and the sentence of a move by its reason. Any other reason ends the attempt or the job, which is bad."""
