"""The CapacityTiers that the user may read, and the core's JobSpec built from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from spotladder.cli.cluster.cluster import ConnectedCluster

if TYPE_CHECKING:
    from spotladder.core.model import JobSpec, Price
    from spotladder.custom_resources import CapacityRecord, JobRecord


async def capacity_in(cluster: ConnectedCluster) -> Mapping[str, CapacityRecord]:
    """The CapacityTiers by name; empty if the user may not list them."""
    from spotladder.clusters.errors import Forbidden
    from spotladder.custom_resources import CapacityRecord
    from spotladder.resources import CAPACITYTIERS

    try:
        found = [CapacityRecord.of(tier) async for page in cluster.client.pages(CAPACITYTIERS) for tier in page.items]
    except Forbidden:
        return {}
    return {record.name: record for record in found}


def price_in(record: CapacityRecord) -> Price:
    """The price in the spec, or else the price that the controller has looked up."""
    from pydantic_core import from_json

    from spotladder.core.model import Price
    from spotladder.workloads.tiers import price_of

    price = price_of(record.model) if record.model else Price(known=False)
    if price.known:
        return price
    status = from_json(record.status)
    known = status.get("price")
    return Price(float(known), float(status.get("onDemandPrice") or known)) if known else price


def core_spec(job: JobRecord, capacity: Callable[[str], CapacityRecord | None]) -> JobSpec:
    """The job as the core's JobSpec. Capacity that the user may not read has no price. Raises InvalidSpec."""
    from spotladder.api.capacitytier import CapacityTier
    from spotladder.core.model import Price
    from spotladder.operator.reading import Reading
    from spotladder.operator.reconcile.load import Specs, resolve, spec_of
    from spotladder.workloads.kinds import workload_of

    def price(tier: CapacityTier) -> Price:
        record = capacity(tier.metadata.name)
        return price_in(record) if record else Price(known=False)

    model = Specs().of(job)
    tiers = resolve(model, capacity, lambda _name: None, frozenset(), price)
    return spec_of(
        job, model, workload=workload_of(model), templates={}, tiers=tiers, reading=Reading(), attribution_window=0.0
    )
