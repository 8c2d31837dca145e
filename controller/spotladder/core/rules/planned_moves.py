"""Rules for an attempt that is healthy and is to be followed by another one: a changed spec, the policy, or a notice
during which the next attempt boots."""

from __future__ import annotations

from spotladder.core.changes.changing import asked, responding
from spotladder.core.changes.standing_by import PlannedMove, given_up, with_standby
from spotladder.core.facts.standby import may_stand_by, standby_ready
from spotladder.core.model import UpdateStrategy
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect
from spotladder.core.situation import READY, Situation


def withdrawn_notice(situation: Situation) -> Effect | None:
    """The nodes that were drained for maintenance are usable again: the attempt need not end."""
    if situation.attempt.notice.leave_by is None or situation.state.loss_counted or not situation.notices_withdrawn:
        return None
    return Effect(responding(situation, leave_by=None))


def end_of_notice(situation: Situation) -> Effect | None:
    """The next attempt has booted during the notice, or it is the last moment for a commit: the attempt drains."""
    attempt, standby = situation.attempt, situation.state.standby.attempt
    if attempt.notice.leave_by is None:
        return None
    can_wait = situation.state.stage in READY and not situation.passed(attempt.notice.leave_by)
    if standby is not None and can_wait and not standby_ready(situation):
        return None
    message = "its nodes are " + ("drained" if situation.notice_reason is Reason.MAINTENANCE else "being reclaimed")
    if standby is None:
        return Effect(situation, situation.notice_reason, f"{message}, and no attempt stands by")
    ready = "stands by" if standby_ready(situation) else "is not ready yet"
    message += f"; attempt {standby.number} on {standby.tier} {ready}"
    return Effect(situation, situation.notice_reason, message)


def planned_move(situation: Situation) -> Effect | None:
    """A changed spec or the policy wants another attempt: with `overlap` it boots as a standby attempt; the live one
    stops when that is ready, or at once without it."""
    if situation.attempt.notice.leave_by is not None:
        return None
    situation, move = _wanted(situation)
    standby = situation.state.standby.attempt
    if standby is not None and situation.state.standby.reason is Reason.HEDGED:
        if move is not None and move.tier != standby.tier:
            situation = given_up(situation, f"{move.tier} is wanted instead")
        return _stops_for(situation, move)  # The live attempt does not train.
    if standby is not None:
        if move is not None and move.tier == standby.tier:
            return _stops_for(situation, move) if standby_ready(situation) else Effect(situation)
        if move is None and not situation.reachable:
            return Effect(situation)  # Whether the move is still wanted is known when the attempt is observed again.
        why = "the move is no longer needed" if move is None else f"{move.tier} is wanted instead"
        situation = given_up(situation, why)
    if move is None or not may_stand_by(situation, move.tier, updates=move.reason is Reason.SPEC_UPDATED):
        return _stops_for(situation, move)
    after = situation.state.standby.not_before
    if after is not None and situation.now < after:
        return Effect(situation) if move.reason is Reason.POLICY else _stops_for(situation, move)
    return Effect(with_standby(situation, move))


def _stops_for(situation: Situation, move: PlannedMove | None) -> Effect:
    """The live attempt stops for this move; it continues without one."""
    return Effect(situation) if move is None else Effect(situation, move.reason, move.message)


def _wanted(situation: Situation) -> tuple[Situation, PlannedMove | None]:
    """The move that a changed spec or the policy wants; None if the live attempt is to continue."""
    attempt = situation.attempt
    if _updates_now(situation):
        return situation, PlannedMove(attempt.tier, Reason.SPEC_UPDATED, situation.pending_update)
    situation = asked(situation, live=True)
    choice = situation.changes.choice
    if choice.tier is None or choice.tier not in situation.open or choice.tier == attempt.tier:
        return situation, None
    message = f"{choice.tier} is preferred ({choice.why or Reason.POLICY})"
    return situation, PlannedMove(choice.tier, Reason.POLICY, message)


def _updates_now(situation: Situation) -> bool:
    """Whether a spec with another pod template ends the live attempt at once: an attempt that never ran
    loses no work."""
    if not (situation.pending_update and situation.reachable):
        return False
    never_ran = situation.attempt.running_at is None
    return never_ran or situation.spec.update_strategy is UpdateStrategy.NOW
