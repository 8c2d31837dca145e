"""Rules for an attempt that is being ended: it drains, and then its objects are removed."""

from __future__ import annotations

from spotladder.core.changes.changing import counted, exhausted_if_exceeded
from spotladder.core.changes.leaving_behind import moves_on
from spotladder.core.diagnosis.verdict import finished, judge
from spotladder.core.facts.standby import takes_over
from spotladder.core.history.losses import noticed_pods
from spotladder.core.model import Exit
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect
from spotladder.core.rules.program_ends import fenced_job
from spotladder.core.situation import Situation

_NOT_CONFIRMED = "not confirmed gone; it may commit until the program of the next attempt starts, which fences it"


def finished_job(situation: Situation) -> Effect | None:
    """The program has finished the job: it succeeds."""
    return Effect(situation, Reason.COMPLETED) if finished(situation) is not None else None


def further_notice(situation: Situation) -> Effect | None:
    """Another node is reclaimed while the attempt drains because of a notice: it is one more failure."""
    attempt, seen = situation.attempt, situation.attempt_seen
    if attempt.ending.reason is not Reason.EVICTION_NOTICE:
        return None
    if seen is not None and seen.exit is None:
        situation = counted(situation, noticed_pods(attempt, seen))
    return Effect(exhausted_if_exceeded(situation))


def foreign_writer(situation: Situation) -> Effect | None:
    """Another controller's attempt has fenced the program: the job fails."""
    seen = situation.attempt_seen
    fenced = seen is not None and seen.exit is Exit.FENCED and situation.foreign_owner
    return fenced_job(situation) if fenced else None


def stopped_program(situation: Situation) -> Effect | None:
    """The program has ended, or no pod can commit any more: the objects of the attempt are removed."""
    seen = situation.attempt_seen
    if (seen is None or seen.exit is None) and situation.can_commit:
        return None
    found = judge(situation)
    return Effect(situation, Reason.DRAINED, "" if found is None else found.message)


def end_of_grace(situation: Situation) -> Effect | None:
    """The program has not stopped within `grace`, or within the rest of the notice: it is killed."""
    attempt = situation.attempt
    since, by = attempt.ending.drain_since or 0.0, attempt.ending.drain_by or 0.0
    if situation.now < by:
        return None
    return Effect(situation, Reason.GRACE_EXCEEDED, f"did not stop within {max(0.0, round(by - since, 1)):g} s")


def removed_objects(situation: Situation) -> Effect | None:
    """The objects of the attempt are gone."""
    if situation.attempt_seen is not None or not situation.reachable:
        return None
    return Effect(situation, Reason.GONE)


def waiting_standby(situation: Situation) -> Effect | None:
    """A standby attempt exists: it takes over at once, since the commit log fences the ended one."""
    return Effect(situation, Reason.RELIEVED) if takes_over(situation) else None


def slow_removal(situation: Situation) -> Effect | None:
    """The removal takes longer than the next attempt waits, or cannot be observed: the ended attempt is left behind,
    since the commit log fences it."""
    deadline = situation.handover_deadline
    if deadline is None or (situation.reachable and situation.now < deadline):
        return None
    return Effect(situation, Reason.LEFT_BEHIND, _NOT_CONFIRMED)


def free_tier(situation: Situation) -> Effect | None:
    """The next attempt runs on a tier where it needs nothing that the ended one may still hold: it starts at once."""
    if not moves_on(situation):
        return None
    return Effect(situation, Reason.MOVED_ON, "removed while the next attempt starts")
