"""Rules: the type of a rule, what it returns, and the ends of an attempt that several rules share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spotladder.core.changes.changing import counted, exhausted_if_exceeded
from spotladder.core.facts import limits
from spotladder.core.model import PodSeen
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation


@dataclass(frozen=True, slots=True)
class Effect:
    """What a rule answers to its event.

    `situation` has the changed state. With a `reason` the job moves to the stage that `transitions` has for it. Without
    one it stays in its stage, and the next rules apply to the changed situation; none of them if the job `waits`.
    """

    situation: Situation
    reason: Reason | None = None
    message: str = ""
    waits: bool = False


Rule = Callable[[Situation], Effect | None]
"""A pure function, named by the event that it answers. It returns None if the event is not seen."""


def ended(situation: Situation, reason: Reason, message: str = "") -> Effect:
    """The attempt ends for `reason`, or because a limit of failures is exceeded if one is."""
    return ended_by_limit(situation) or Effect(situation, reason, message)


def ended_by_limit(situation: Situation) -> Effect | None:
    """The attempt ends because its tier or the job has had more failures than allowed; None if neither has."""
    if limits.over_backoff_limit(situation):
        return Effect(situation, Reason.BACKOFF_LIMIT_EXCEEDED, limits.all_failures(situation))
    if limits.over_tier_limit(situation):
        message = limits.tier_failures(situation)
        return Effect(exhausted_if_exceeded(situation), Reason.MAX_FAILURES_EXCEEDED, message)
    return None


def ended_by_loss(situation: Situation, reason: Reason, unseen: PodSeen, message: str = "") -> Effect:
    """The attempt ends because of a loss, which counts one failure: that of `unseen`, unless a lost pod was counted."""
    return ended(situation if situation.state.loss_counted else counted(situation, [unseen]), reason, message)
