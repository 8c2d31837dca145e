"""Hedges: while a tier has no capacity for the live attempt, the next tier is started beside it.

1. With `overlap.hedge_after`, an attempt that waits for capacity for that long gets the next attempt beside it, on the
   next tier that can be used, as a standby attempt. The time runs and is suspended as provisionTimeout is.
2. The attempt that is ready first runs. If both are, it is the live one. The other is deleted: no failure is counted
   and no tier is exhausted.
3. A live attempt that ends for another reason, such as provisionTimeout, is followed by its hedge.
4. `overlap.budget` limits what hedges cost; `standing_by` deletes those that fail. After one that failed, the next one
   starts after `STANDBY_RETRY_INTERVAL`; after one that was deleted, when the job has waited for as long again.

A program whose library cannot be held starts when its workers are ready, and its first log entry fences the live
attempt. So a hedge that has written to the log takes over. `rules.missing_capacity` starts and ends hedges.
"""

from __future__ import annotations

from spotladder.core.diagnosis.impediment import Timer, rule_of
from spotladder.core.facts import limits
from spotladder.core.facts.standby import overlap_budget_used
from spotladder.core.model import Handover, Instant, Stage, Tier
from spotladder.core.situation import Situation


def hedge_due(situation: Situation) -> Instant | None:
    """When the next tier is started beside the live attempt; None if it will not be."""
    overlap, since = situation.spec.overlap, situation.state.timers.waiting_since
    if overlap is None or overlap.hedge_after is None or since is None or not _waits_for_capacity(situation):
        return None
    if hedge_tier(situation) is None:
        return None
    return max(since + overlap.hedge_after, situation.state.standby.not_before or since)


def hedge_tier(situation: Situation) -> Tier | None:
    """The tier of a hedge: the first after the job's own that can be used and whose cost is known. None if there is
    none, or the job may have no hedge."""
    spec, state, progress = situation.spec, situation.state, situation.seen.progress
    if spec.overlap is None or spec.overlap.budget is None or spec.handover is not Handover.FENCED:
        return None
    if (
        state.standby.attempt is not None
        or overlap_budget_used(situation)
        or situation.finished
        or limits.over_backoff_limit(situation)
    ):
        return None
    if progress.attempt and not progress.stands_by:
        return None
    names = [tier.name for tier in spec.tiers]
    later = spec.tiers[names.index(state.tier) + 1 :] if state.tier in names else ()
    usable = (tier for tier in later if situation.may_use(tier.name))
    return next((tier for tier in usable if tier.price.known), None)


def _waits_for_capacity(situation: Situation) -> bool:
    """Whether provisionTimeout runs. An attempt that trained before, in a cluster that is unreachable now, may still
    train."""
    rule = rule_of(situation)
    if rule is None or rule.timer is not Timer.PROVISION or situation.seen.launched:
        return False
    return situation.state.stage is Stage.STARTING or (situation.state.stage is Stage.RECOVERING and rule.exhausts)
