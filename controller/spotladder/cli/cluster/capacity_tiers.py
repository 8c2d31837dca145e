"""The CapacityTiers that the user may read, and the core's JobSpec built from them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.api.tier_history import price_or_last
from spotladder.core.model import JobSpec, Price
from spotladder.errors import InvalidSpec
from spotladder.workloads.core_spec import core_spec
from spotladder.workloads.tiers import PlacedTier, price_of, resolve_tier


def price_in(record: CapacityRecord) -> Price:
    """The price in the spec, or else the price that the controller has looked up."""
    return price_or_last(price_of(record.model) if record.model else Price(known=False), record.status)


def spec_in(job: JobRecord, capacity: Callable[[str], CapacityRecord | None]) -> JobSpec:
    """The job as the core's JobSpec. Capacity that the user may not read has no price. Raises InvalidSpec.

    `stall_timeout` does not run: the commands do not follow the commit log.
    """
    model = job.parsed()
    tiers: dict[str, PlacedTier] = {}

    def group(name: str) -> tuple[CapacityTier, Price] | None:
        found = capacity(name)
        return (found.model, price_in(found)) if found is not None and found.model is not None else None

    for index, tier in enumerate(model.spec.tiers):
        record = capacity(tier.capacity_tier)
        if record is not None and record.model is not None:
            with suppress(InvalidSpec):  # the controller reports a CapacityTier that contradicts itself
                tiers[tier.name] = resolve_tier(index, tier, record.model, price_in(record), group)
    return replace(core_spec(job, model, tiers), stall_timeout=inf)
