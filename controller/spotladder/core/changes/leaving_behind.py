"""Attempts that are left behind: the next attempt starts while the objects of an ended one are being removed.

1. Under `handover: Fenced`, the next attempt on another tier is planned as soon as the last has ended. The removal and
   the launch are actions of the same decision. The commit log fences the last attempt, which may still run.
2. The next attempt waits for the removal, at most `HANDOVER_GRACE_PERIOD`, on a tier that the ended attempt used: their
   pods would compete for the same nodes. Likewise if both tiers may wait in the same admission queue. It does not wait
   for pods that are all on silent nodes: nothing is placed there.
3. The job pays for the nodes of an attempt until its pods are gone, also for those of its last attempt and of a standby
   attempt that was given up. The removal is repeated until the objects are gone; it follows from the observation, so no
   crash leaves objects behind.
"""

from __future__ import annotations

from dataclasses import replace

from spotladder.core.accounting.held_nodes import held_nodes
from spotladder.core.changes.moving import moved
from spotladder.core.facts import limits
from spotladder.core.facts.tier_view import view_of
from spotladder.core.history.losses import all_suspect
from spotladder.core.model import Instant, JobState, LeftAttempt, Tier
from spotladder.core.reasons import Reason
from spotladder.core.situation import HANDOVER_GRACE_PERIOD, Situation


def moves_on(situation: Situation) -> bool:
    """Whether the next attempt is planned although the ended one is not confirmed gone."""
    spec, policy = situation.spec, situation.policy
    if policy is None or not situation.fences or spec.suspend or not situation.open:
        return False
    if situation.paused:
        return False
    idle = replace(situation, state=moved(situation, Reason.MOVED_ON)[0])
    if limits.reached(idle) is not None:
        return False
    name = policy.choose(view_of(idle, live=False)).tier  # The same choice as after the move.
    target = None if name is None else spec.tier(name)
    return target is not None and _has_room_beside(situation, target)


def _has_room_beside(situation: Situation, target: Tier) -> bool:
    """Whether an attempt on this tier needs nothing that the ended one, or an earlier one, may still hold."""
    if not situation.may_use(target.name):
        return False
    if target.name == situation.attempt.tier or is_left(situation, target.name):
        return False
    seen, current = situation.attempt_seen, situation.tier
    queued = seen is not None and seen.queue is not None
    return not queued or (current is not None and current.queue != target.queue)


def is_left(situation: Situation, tier: str) -> bool:
    """Whether the next attempt on this tier waits until an earlier one there is gone."""
    return any(one.tier == tier for one in _competing(situation))


def waits_until(situation: Situation) -> Instant | None:
    """When the next attempt may start on a tier on which an earlier one is being removed; None if it may now."""
    return min((one.since + HANDOVER_GRACE_PERIOD for one in _competing(situation)), default=None)


def _competing(situation: Situation) -> list[LeftAttempt]:
    """The attempts whose pods may still hold nodes that the next attempt on their tier could use."""
    recent = [one for one in situation.state.left if situation.now < one.since + HANDOVER_GRACE_PERIOD]
    return [one for one in recent if not all_suspect(situation.seen.attempt(one.number))]


def with_left_observed(situation: Situation) -> Situation:
    """The situation with the nodes that the attempts in removal hold, without attempts that are gone."""
    state, seen = situation.state, situation.seen
    if not state.left:
        return situation
    found = ((one, seen.attempt(one.number)) for one in state.left)
    left = tuple(replace(one, nodes=held_nodes(there)) for one, there in found if there is not None)
    return replace(situation, state=replace(state, left=left))


def why_removed(state: JobState, number: int) -> Reason:
    """The reason for the removal of an attempt that is not the live one."""
    ended = (record.reason for record in reversed(state.history) if record.number == number)
    return next(ended, state.reason)
