"""Facts of the standby attempt that follow from a situation. Decides and changes nothing."""

from __future__ import annotations

from spotladder.core.accounting.overlap_prices import missing_prices
from spotladder.core.model import AttemptSeen, CapacityType, Handover, Instant, Tier
from spotladder.core.model.gang import gang_placed, required_ready, required_workers
from spotladder.core.situation import READY, Situation


def overlaps(situation: Situation) -> bool:
    """Whether a planned move may start the next attempt beside the live one."""
    spec, attempt, progress = situation.spec, situation.state.attempt, situation.seen.progress
    if spec.overlap is None or spec.handover is not Handover.FENCED or attempt is None:
        return False
    if situation.state.stage not in READY or situation.finished:
        return False
    if missing_prices(spec.overlap, {tier.name: tier.price.known for tier in spec.tiers}).for_moves:
        return False  # Nothing bounds the cost.
    return progress.stands_by and progress.attempt == attempt.number and not overlap_budget_used(situation)


def returns_beside(situation: Situation, target: Tier) -> bool:
    """Whether the attempt of the policy's move to this tier may start beside the live one. A move to a tier that is
    not cheaper saves a deadline, so it never waits."""
    current, standby = situation.tier, situation.state.standby.attempt
    if standby is not None:
        return standby.tier == target.name
    if current is None or target.name == current.name or not overlaps(situation):
        return False
    if target.price.known and current.price.known and target.price != current.price:
        return target.price.per_node_hour < current.price.per_node_hour
    return target.capacity_type is CapacityType.SPOT and current.capacity_type is not CapacityType.SPOT


def may_stand_by(situation: Situation, tier: str, *, updates: bool) -> bool:
    """Whether the next attempt of a move to this tier may run beside the live one. `updates`: only the pod template
    changes."""
    target = situation.spec.tier(tier)
    if target is None or tier in situation.seen.unavailable:
        return False
    return overlaps(situation) if updates else returns_beside(situation, target)


def overlap_budget_used(situation: Situation) -> bool:
    """Whether the standby attempts have cost as much as they may."""
    overlap = situation.spec.overlap
    return overlap is not None and overlap.budget is not None and situation.state.surplus.overlap >= overlap.budget


def standby_seen(situation: Situation) -> AttemptSeen | None:
    """The standby attempt as observed; None if it does not exist or cannot be observed."""
    standby = situation.state.standby.attempt
    return situation.seen.attempt(standby.number) if standby is not None else None


def takes_over(situation: Situation) -> bool:
    """Whether a standby attempt follows the ended one: it exists, and its tier is not exhausted."""
    standby = situation.state.standby.attempt
    return standby is not None and standby.tier in situation.open


def standby_ready(situation: Situation) -> bool:
    """Whether the standby attempt can take over at once: every worker that it needs is ready and its program is
    held."""
    standby, seen = situation.state.standby.attempt, standby_seen(situation)
    if standby is None or seen is None or seen.held is False:
        return False
    return required_ready(standby, seen, situation.spec)


def standby_placed(situation: Situation) -> bool:
    """Whether the head and every worker that the standby attempt needs have a node with their image."""
    standby, seen = situation.state.standby.attempt, standby_seen(situation)
    return standby is not None and gang_placed(seen, required_workers(standby, seen, situation.spec))


def standby_deadline(situation: Situation) -> Instant | None:
    """When the standby attempt is given up unless it is ready: after the provisionTimeout of its tier, and then
    startTimeout while every pod that it needs has its node and image."""
    standby = situation.state.standby.attempt
    tier = situation.spec.tier(standby.tier) if standby is not None else None
    if standby is None or tier is None:
        return None
    placed = situation.spec.start_timeout if standby_placed(situation) else 0.0
    return standby.created_at + tier.provision_timeout + placed


def overlap_deadline(situation: Situation) -> Instant | None:
    """When the standby attempt reaches the maximum duration of an overlap."""
    standby, overlap = situation.state.standby.attempt, situation.spec.overlap
    if standby is None or overlap is None or overlap.max_duration is None:
        return None
    return standby.created_at + overlap.max_duration
