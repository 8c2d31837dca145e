"""Changes of a situation that several rules make: failures are counted, a tier is exhausted, the policy is asked.

Each function returns the changed situation. None of them changes the stage: `lifecycle` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from spotladder.core.facts import limits
from spotladder.core.facts.tier_view import view_of
from spotladder.core.history.losses import count, exhaust
from spotladder.core.model import PodSeen, StandbyChange
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation


def with_response(situation: Situation, **changes: Any) -> Situation:
    """The situation with these fields of the live attempt's response to notices changed."""
    attempt = situation.attempt
    attempt = replace(attempt, notice=replace(attempt.notice, **changes))
    return replace(situation, state=replace(situation.state, attempt=attempt))


def responding(situation: Situation, **changes: Any) -> Situation:
    """The situation with these fields of the live attempt's response to notices changed, which the backend learns in
    the next decision."""
    situation = with_response(situation, **changes)
    return replace(situation, changes=replace(situation.changes, replanned=True))


def counted(situation: Situation, pods: Sequence[PodSeen]) -> Situation:
    """The situation in which these pods are counted as failures of the tier, each pod once."""
    state, losses = count(situation.state, list(pods), situation.spec.failure_unit)
    if not losses:
        return situation
    changes = replace(situation.changes, losses=(*situation.changes.losses, *losses))
    return replace(situation, state=state, changes=changes)


def exhausted(situation: Situation, reason: Reason) -> Situation:
    """The situation in which the tier of the live attempt is exhausted for this reason."""
    return replace(situation, state=exhaust(situation.state, situation.attempt.tier, reason))


def exhausted_if_exceeded(situation: Situation) -> Situation:
    """The situation in which the tier is exhausted if it has had more failures than allowed."""
    return exhausted(situation, Reason.MAX_FAILURES_EXCEEDED) if limits.over_tier_limit(situation) else situation


def without_wait(situation: Situation) -> Situation:
    """The situation in which provisionTimeout begins again with the next attempt."""
    timers = replace(situation.state.timers, waiting_since=None)
    return replace(situation, state=replace(situation.state, timers=timers))


def asked(situation: Situation, *, live: bool) -> Situation:
    """The situation with the choice of the policy, for the live attempt or for the next one."""
    if situation.policy is None:
        raise AssertionError("only a decision has a policy")
    choice = situation.policy.choose(view_of(situation, live=live))
    return replace(situation, changes=replace(situation.changes, choice=choice))


def with_standby_change(situation: Situation, change: StandbyChange) -> Situation:
    """The situation with this change of the standby attempt recorded."""
    changes = replace(situation.changes, standby=(*situation.changes.standby, change), replanned=True)
    return replace(situation, changes=changes)
