"""Current prices for the pools of a fleet, from AWS's price list and its history of spot prices.

A price in the fleet file takes precedence, because the controller charges jobs by it. Google Cloud has no API for the
price of a machine: its pools keep the prices of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from spotladder import price_sources
from spotladder.api.capacitytier import CapacityTierSpec
from spotladder.core.model import CapacityType
from spotladder.errors import SpotladderError
from spotladder_infra.amazon import Connect
from spotladder_infra.costs import Rate
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool


@dataclass(frozen=True, slots=True)
class LivePrices:
    """The rates with the current prices, and one sentence for each price that could not be looked up."""

    rates: tuple[Rate, ...]
    unknown: tuple[str, ...]


def asked(fleet: Fleet, rates: Sequence[Rate], connect: Connect) -> LivePrices:
    """The same rates at current prices. Spot prices are the mean of the pool's zones and instance types."""
    pools = {pool.name: (cluster, pool) for cluster in fleet.spec.clusters for pool in cluster.pools}
    found, unknown = [], []
    for rate in rates:
        cluster, pool = pools[rate.pool]
        if cluster.cloud is not Cloud.AWS or pool.capacity_type is CapacityType.RESERVED or not pool.instance_types:
            found.append(rate)
            continue
        try:
            price = price_sources.aws(_spec(cluster, pool), connect)
        except SpotladderError as error:
            unknown.append(f"{pool.name}: {error}")
            found.append(rate)
            continue
        hourly = rate.hourly if pool.price is not None else price.per_node_hour
        found.append(replace(rate, hourly=hourly, on_demand=price.on_demand))
    return LivePrices(tuple(found), tuple(unknown))


def _spec(cluster: Cluster, pool: Pool) -> CapacityTierSpec:
    return CapacityTierSpec.model_validate(
        {
            "provider": "aws",
            "capacityType": str(pool.capacity_type),
            "region": cluster.region,
            "zones": list(pool.zones or zones_of(cluster)),
            "instanceTypes": list(pool.instance_types),
            "price": {"source": "aws"},
        }
    )
