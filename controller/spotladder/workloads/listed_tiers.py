"""The tiers of a job on CapacityTiers that were read from files or from a cluster at one time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.missing_capacity import missing_capacity
from spotladder.api.problems import InvalidDocument
from spotladder.api.tier_history import NO_HISTORY, TierHistory
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import Price
from spotladder.workloads.tiers import Lookup, PlacedTier, price_of, resolve_tier


def listed_in(capacity: Mapping[str, CapacityTier], price: Callable[[CapacityTier], Price] = price_of) -> Lookup:
    """Finds these CapacityTiers, by default with the prices in them."""
    return lambda name: (capacity[name], price(capacity[name])) if name in capacity else None


def resolve_tiers(
    job: TieredJob,
    capacity: Mapping[str, CapacityTier],
    *,
    price: Callable[[CapacityTier], Price] = price_of,
    history: Callable[[CapacityTier], TierHistory] = lambda _: NO_HISTORY,
) -> tuple[PlacedTier, ...]:
    """All tiers of the job, in its order.

    `capacity` are the CapacityTiers by name. By default, prices that must be looked up are unknown.

    Raises:
        InvalidSpec: a tier names a CapacityTier that does not exist (the error lists every such tier), or one that
            contradicts itself.
    """
    if problems := missing_capacity(job, capacity):
        raise InvalidDocument(problems)
    found = ((entry, capacity[entry.capacity_tier]) for entry in job.spec.tiers)
    known = listed_in(capacity, price)
    return tuple(
        resolve_tier(index, entry, named, price(named), known, history=history(named))
        for index, (entry, named) in enumerate(found)
    )
