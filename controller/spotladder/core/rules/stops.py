"""Rules for a job that must not continue: a limit, a suspension, a tier that the user has removed."""

from __future__ import annotations

from spotladder.core.facts import limits
from spotladder.core.reasons import Reason
from spotladder.core.rules.effect import Effect
from spotladder.core.situation import Situation


def job_limit(situation: Situation) -> Effect | None:
    """A limit of the job is reached, such as `deadline` or `budget`: an attempt stops, and then the job fails."""
    reached = limits.reached(situation)
    return None if reached is None else Effect(situation, *reached)


def suspension(situation: Situation) -> Effect | None:
    """`suspend` is set: an attempt stops, and then the job is suspended."""
    return Effect(situation, situation.spec.suspend_reason) if situation.spec.suspend else None


def removed_tier(situation: Situation) -> Effect | None:
    """The spec no longer has the tier of the attempt: it stops."""
    if situation.tier is not None:
        return None
    return Effect(situation, Reason.TIER_REMOVED, f"{situation.attempt.tier} is no longer among the tiers")
