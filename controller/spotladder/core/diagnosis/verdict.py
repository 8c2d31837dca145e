"""How the program of an attempt has ended, or whether it hangs: a table from evidence to outcome.

An exit code is the word of the outermost process only: a pipe, a wrapper shell or a framework that ends in order at
SIGTERM turns every end into exit code 0. So the commit log and the losses of the attempt decide with it. `judge`
returns the first row whose evidence is seen. No other module decides what exit code 0 means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from spotladder.core.durations import format_duration
from spotladder.core.history.losses import lost_pods, noticed_pods, suspect_pods
from spotladder.core.model import Exit, PodPhase, Stage
from spotladder.core.situation import READY, Situation

SILENT_STALLS = 12
"""The number of stallTimeouts for which a program without start entries may print nothing. Programs print less
often than they commit, and such a program loses all of its work if it is ended by mistake."""


class Outcome(StrEnum):
    """What the evidence says of the program of an attempt."""

    FINISHED = "finished"  # the job has succeeded
    INTERRUPTED = "interrupted"  # the next attempt continues
    FAILED = "failed"  # the program's own error
    HANGS = "hangs"  # the attempt ends, and one failure is counted
    UNKNOWN = "unknown"  # the decision waits for more evidence


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """One row of the table. `describe` returns the sentence for the user, or "" if the evidence is not seen."""

    name: str
    outcome: Outcome
    describe: Callable[[Situation], str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The row that applies now, and its sentence for the user."""

    rule: VerdictRule
    message: str

    @property
    def outcome(self) -> Outcome:
        """The outcome of the row."""
        return self.rule.outcome


def _last_step(situation: Situation) -> str:
    """Exit code 0, and the commit log has the last step of the program."""
    return f"exit code 0; the last step, {_steps(situation)}, is committed" if _done(situation) else ""


def _cut_short(situation: Situation) -> str:
    """Exit code 0 before the last step was committed, while a notice, a loss, a drain or a removal was outstanding."""
    if not _exited(situation, Exit.SUCCEEDED) or _done(situation) or not (why := interruption(situation)):
        return ""
    if not situation.uses_library:
        return (
            f"exit code 0 while {why}; the program does not use spotladder.train, so nothing shows that it had "
            "finished: it begins from the start"
        )
    done = _steps(situation) or "its end is not known"
    return f"exit code 0 while {why}, and the program had not finished ({done})"


def _early(situation: Situation) -> str:
    """Exit code 0 before the declared last step, and a loss that explains it may still be observed (failure attribution
    window)."""
    if not _ended_early(situation) or situation.passed(situation.attribution_deadline):
        return ""
    return f"exit code 0 at {_steps(situation)}"


def _nothing_against(situation: Situation) -> str:
    """Exit code 0, and no notice, loss, drain or removal was outstanding."""
    if not _exited(situation, Exit.SUCCEEDED):
        return ""
    return f"exit code 0 at {_steps(situation)}; nothing interrupted it" if _ended_early(situation) else "exit code 0"


def _stopped(situation: Situation) -> str:
    """Exit code 75: the program committed and stopped."""
    return "exit code 75" if _exited(situation, Exit.INTERRUPTED) else ""


def _failed_in_a_loss(situation: Situation) -> str:
    """The program failed during a notice or a loss, or right after lost pods were replaced."""
    attempt, seen = situation.attempt, situation.attempt_seen
    if seen is None or seen.exit is not Exit.FAILED:
        return ""
    counted = situation.state.loss_counted or situation.outlived_loss
    lost = counted or noticed_pods(attempt, seen) or suspect_pods(attempt, seen)
    return seen.message or "it failed" if lost or _has_just_recovered(situation) else ""


def _failed_just_now(situation: Situation) -> str:
    """The program failed, and a loss that explains it may still be observed (failure attribution window)."""
    passed = situation.passed(situation.attribution_deadline)
    return "" if passed else _failure(situation)


def _failure(situation: Situation) -> str:
    """The program failed, and nothing else explains it."""
    seen = situation.attempt_seen
    return seen.message or "it failed" if seen is not None and seen.exit is Exit.FAILED else ""


def _hung(situation: Situation) -> str:
    """All ranks are connected and have made no step for many times the duration of a step."""
    seen = situation.attempt_seen
    if not _trains(situation) or seen is None or not seen.hung or situation.finished or situation.held_by is not None:
        return ""
    return f"the program hangs: {seen.hung}"


def _no_new_step(situation: Situation) -> str:
    """A program that uses `spotladder.train` has committed no new step for `stallTimeout`."""
    if not _trains(situation) or not situation.passed(situation.stall_deadline):
        return ""
    limit, progress = f"{situation.spec.stall_timeout:.10g} s", situation.seen.progress
    if progress.committed_at is None:
        return f"no commit for {limit}"
    return f"no commit of a new step for {limit}; step {progress.step} is the newest"


def _no_sign_of_life(situation: Situation) -> str:
    """A program without a start entry, which had printed something, has printed nothing for twelve times
    `stallTimeout`, which the job sets, or Ray does not report it as running."""
    seen, limit = situation.attempt_seen, SILENT_STALLS * situation.spec.stall_timeout
    if not _trains(situation) or seen is None or seen.quiet_for is None:
        return ""
    if seen.reported_running and not situation.spec.stall_timeout_given:
        return ""
    if not situation.passed(situation.silence_deadline(limit)) or seen.quiet_for < limit:
        return ""
    quiet = format_duration(seen.quiet_for // 1)
    return f"the program shows no sign of life: its output has not grown for {quiet}, and it has no start entry"


def without_library(situation: Situation) -> str:
    """The program has written no start entry for `stallTimeout`: its commits cannot show whether it trains."""
    if not _trains(situation) or not situation.passed(situation.silence_deadline(situation.spec.stall_timeout)):
        return ""
    waited, seen = format_duration(situation.spec.stall_timeout), situation.attempt_seen
    limit = SILENT_STALLS * situation.spec.stall_timeout
    quiet = seen is not None and seen.quiet_for is not None and seen.quiet_for >= limit
    silent = (
        f"; its output has not grown for more than {format_duration(limit)}: if it hangs, set spec.stallTimeout: "
        "then twelve times as long without output ends the attempt"
        if quiet
        else ""
    )
    return (
        f"the program has written no start entry in {waited}: it does not use spotladder.train, so it begins from the "
        f"start after each loss, and only its output and Ray show whether it hangs{silent}"
    )


VERDICTS: tuple[VerdictRule, ...] = (
    VerdictRule("LastStep", Outcome.FINISHED, _last_step),
    VerdictRule("CutShort", Outcome.INTERRUPTED, _cut_short),
    VerdictRule("Early", Outcome.UNKNOWN, _early),
    VerdictRule("NothingAgainst", Outcome.FINISHED, _nothing_against),
    VerdictRule("Stopped", Outcome.INTERRUPTED, _stopped),
    VerdictRule("FailedInLoss", Outcome.INTERRUPTED, _failed_in_a_loss),
    VerdictRule("FailedJustNow", Outcome.UNKNOWN, _failed_just_now),
    VerdictRule("Failed", Outcome.FAILED, _failure),
    VerdictRule("Hung", Outcome.HANGS, _hung),
    VerdictRule("NoNewStep", Outcome.HANGS, _no_new_step),
    VerdictRule("NoSignOfLife", Outcome.HANGS, _no_sign_of_life),
    VerdictRule("NoStartEntry", Outcome.UNKNOWN, without_library),
)
"""The table, in order of precedence: the first row whose evidence is seen applies."""


def judge(situation: Situation) -> Verdict | None:
    """What the evidence says of the live attempt's program; None while it runs and nothing is wrong, and for the exits
    that are no statement about the program (a fence, refused credentials, a lost head)."""
    found = ((rule, rule.describe(situation)) for rule in VERDICTS)
    return next((Verdict(rule, message) for rule, message in found if message), None)


def finished(situation: Situation) -> Verdict | None:
    """The verdict of a program that has finished the job; None if it has not."""
    found = judge(situation)
    return found if found is not None and found.outcome is Outcome.FINISHED else None


def interruption(situation: Situation) -> str:
    """What had interrupted the live attempt and is not over; "" if nothing had.

    Pods that are only not ready, and a cluster that does not answer, are no interruption: the program may have ended
    well meanwhile.
    """
    state, attempt, seen = situation.state, situation.attempt, situation.attempt_seen
    if state.stage in (Stage.DRAINING, Stage.ENDING):
        return f"the attempt was being ended ({attempt.ending.reason})"
    if state.stage is Stage.REPLACING or attempt.notice.leave_by is not None:
        return "its nodes were about to be reclaimed"
    if seen is None:
        return ""
    if seen.queue is not None and (seen.queue.held or seen.queue.eviction is not None):
        return "its quota was withdrawn"
    noticed = [pod for pod in seen.pods if pod.noticed and pod.phase is not PodPhase.LOST]
    going = [*noticed, *suspect_pods(attempt, seen), *lost_pods(attempt, seen)]
    if going:
        return f"the node of {going[0].called} was about to go or had gone ({going[0].cause})"
    if state.loss_counted:
        return "a pod was lost"
    return "a pod that was counted as lost still took part" if situation.outlived_loss else ""


def _trains(situation: Situation) -> bool:
    """Whether all pods of the attempt are ready and its program has not ended, as far as is seen."""
    seen = situation.attempt_seen
    return situation.state.stage in READY and (seen is None or seen.exit is None)


def _exited(situation: Situation, how: Exit) -> bool:
    seen = situation.attempt_seen
    return seen is not None and seen.exit is how


def _total(situation: Situation) -> int:
    """The number of steps after which the program ends; 0: it has not declared one."""
    return situation.seen.progress.total or situation.state.measured.total


def _done(situation: Situation) -> bool:
    return _exited(situation, Exit.SUCCEEDED) and situation.finished


def _ended_early(situation: Situation) -> bool:
    ended = _exited(situation, Exit.SUCCEEDED) and not situation.finished
    return ended and _total(situation) > situation.seen.progress.step


def _steps(situation: Situation) -> str:
    total = _total(situation)
    return f"step {situation.seen.progress.step} of {total}" if total else ""


def _has_just_recovered(situation: Situation) -> bool:
    """Whether lost pods were replaced shortly before the program failed, so that the loss may have caused
    the failure."""
    attempt = situation.attempt
    if attempt.exited_at is None or attempt.all_ready_at is None or attempt.all_ready_at == attempt.running_at:
        return False
    return attempt.exited_at - attempt.all_ready_at < situation.spec.attribution_window
