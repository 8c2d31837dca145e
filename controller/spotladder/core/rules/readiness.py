"""Rules for the workers of a live attempt: all of them are ready, some are missing, or they make no progress."""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.changes.changing import counted
from spotladder.core.diagnosis.verdict import Outcome, judge
from spotladder.core.facts.elastic import fits, how_many, why_smaller
from spotladder.core.history.losses import synthetic
from spotladder.core.model import PodRole, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.core.rules.effect import Effect, ended
from spotladder.core.situation import Situation


def ready_workers(situation: Situation) -> Effect | None:
    """The head and enough workers are ready, or run and make progress: the job trains."""
    if not situation.all_pods_ready and not situation.trains_unready:
        return None
    return Effect(situation, Reason.ALL_READY, how_many(situation))


def recovered_workers(situation: Situation) -> Effect | None:
    """Enough workers are ready again and the program makes progress with them: the job trains."""
    seen, since = situation.attempt_seen, situation.state.timers.recovering_since
    moves = seen is None or seen.moved_at is None or since is None or seen.moved_at >= since
    recovered = situation.all_pods_ready and moves
    if not (recovered or situation.trains_unready) or not fits(situation):
        return None
    return Effect(situation, Reason.ALL_READY, how_many(situation))


def missing_workers(situation: Situation) -> Effect | None:
    """A pod is lost or not ready, or was lost and is replaced already: recovery inside the attempt is expected."""
    trains = situation.state.stage is Stage.RUNNING and situation.trains_unready
    if (situation.all_pods_ready or trains) and not _replaced_unseen(situation):
        return None
    losses = situation.changes.losses
    what = ", ".join(f"{loss.pod} ({loss.cause})" for loss in losses)
    if not losses:
        what = "not every pod is ready" if situation.reachable else "its cluster cannot be reached"
    return Effect(situation, Reason.RECOVERING, what)


def _replaced_unseen(situation: Situation) -> bool:
    """Whether pods of the gang were lost and replaced since the last decision. A program that restarts with fewer
    workers is answered by `smaller_program`, one that boots its successor by `planned_moves`."""
    state = situation.state
    if state.stage is not Stage.RUNNING or not state.loss_counted or situation.elastic:
        return False
    if situation.attempt.notice.leave_by is not None:
        return False
    pods = situation.attempt_seen.pods if situation.attempt_seen is not None else ()
    beside = {pod.called for pod in pods if pod.role is PodRole.AUXILIARY}
    return any(not loss.noticed and loss.pod not in beside for loss in situation.changes.losses)


def survived_loss(situation: Situation) -> Effect | None:
    """All workers are ready although pods were lost: the loss explains a failure of the program only within the failure
    attribution window."""
    state, attempt = situation.state, situation.attempt
    if not state.loss_counted or attempt.notice.leave_by is not None or not situation.notices_withdrawn:
        return None
    attempt = replace(attempt, all_ready_at=situation.now, known=replace(attempt.known, lost_units=()))
    return Effect(replace(situation, state=replace(state, attempt=attempt, loss_counted=False)))


def smaller_program(situation: Situation) -> Effect | None:
    """An elastic program has lost workers and has not restarted with fewer yet: it recovers."""
    if fits(situation):
        return None
    return Effect(situation, Reason.RECOVERING, why_smaller(situation, list(situation.changes.losses)))


def stall(situation: Situation) -> Effect | None:
    """The program hangs, or has committed no new step for `stallTimeout`: the attempt ends with one failure."""
    found, seen = judge(situation), situation.attempt_seen
    if found is None or found.outcome is not Outcome.HANGS:
        return None
    if seen is not None and seen.hung:
        situation = replace(situation, state=replace(situation.state, hangs=situation.state.hangs + 1))
    stalled = synthetic(situation.attempt, "stalled", Cause.STALLED, "its program, which makes no progress")
    situation = counted(situation, [stalled])
    return ended(situation, Reason.STALLED, found.message)
