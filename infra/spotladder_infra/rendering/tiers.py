"""The CapacityTiers of a fleet: one for each worker pool. Jobs name them in `spec.tiers`."""

from __future__ import annotations

from typing import Any

from spotladder.api.capacitytier import HOME, ApplyTo
from spotladder.api.fields import plain_number
from spotladder.core.durations import format_duration
from spotladder_infra.facts import prices
from spotladder_infra.rendering.labels import Object, selectors, tolerations
from spotladder_infra.topology.cluster import WITH_STACK, Cluster
from spotladder_infra.topology.defaults import notice_of, price_of, provider_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool, PoolRole


def capacity_tiers(fleet: Fleet) -> list[Object]:
    """The CapacityTiers of all clusters, which are created in the home cluster, in the order of the file."""
    return [
        capacity_tier(fleet, cluster, pool)
        for cluster in fleet.spec.clusters
        for pool in cluster.pools
        if pool.role is PoolRole.WORKERS
    ]


def capacity_tier(fleet: Fleet, cluster: Cluster, pool: Pool) -> Object:
    """The CapacityTier of one pool."""
    spec: dict[str, Any] = {
        "capacityType": str(pool.capacity_type),
        "provider": str(provider_of(cluster)),
        "cluster": HOME if cluster.name == fleet.spec.home else cluster.name,
        "extraSelectors": selectors(cluster, pool),
        "applyTo": str(ApplyTo.WORKERS),
    }
    if cluster.region:
        spec["region"] = cluster.region
    if pool.zones:
        spec["zones"] = list(pool.zones)
    if pool.instance_types:
        spec["instanceTypes"] = list(pool.instance_types)
    if tolerated := tolerations(cluster, pool):
        spec["extraTolerations"] = tolerated
    heads = next((other for other in cluster.pools if other.role is PoolRole.HEADS), None)
    if heads is not None:
        spec["headSelectors"] = selectors(cluster, heads)
    if notice := notice_of(cluster, pool):
        spec["notice"] = format_duration(notice)
    if price := price_of(cluster, pool):
        spec["price"] = {"source": "aws"} if price.hourly is None else {"perNodeHour": plain_number(price.hourly)}
        if price.on_demand is not None:
            spec["price"]["onDemandPerNodeHour"] = plain_number(price.on_demand)
        if heads is not None and (per_hour := _head_price(cluster, heads)) is not None:
            spec["price"]["headPerHour"] = plain_number(per_hour)
    bucket = fleet.bucket_of(cluster)
    if bucket is not None and cluster.region and bucket.region != cluster.region:
        spec["egressPerGiB"] = plain_number(prices.REGION_EGRESS_GIB[bucket.cloud])
    return {
        "apiVersion": "spotladder.io/v1alpha1",
        "kind": "CapacityTier",
        "metadata": {"name": pool.name, "labels": {"spotladder.io/fleet": fleet.metadata.name}},
        "spec": spec,
    }


def _head_price(cluster: Cluster, heads: Pool) -> float | None:
    """USD per hour for the node of a head."""
    if heads.price is not None:
        return heads.price.per_node_hour
    return prices.dearest(heads.instance_types) if cluster.cloud in WITH_STACK else None
