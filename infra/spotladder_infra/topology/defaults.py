"""Defaults of a fleet file that depend on other fields."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.api.capacitytier import Provider
from spotladder.core.model import CapacityType, Seconds
from spotladder.workloads.providers import NOTICE
from spotladder_infra.facts import instances, prices, regions
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool

SYSTEM_INSTANCE = {Cloud.AWS: "m7i.large", Cloud.GCP: "e2-standard-4"}
SYSTEM_DISK_GIB = 50
"""Size of the root volume of a system node in GiB."""

MAX_ACCELERATORS = 1_000
"""Bound of GKE's node auto-provisioning for accelerators of a kind, too high to apply: the limits of pools and teams
apply. Without a bound for a kind, GKE creates no nodes with it."""

SERVICES = {Cloud.AWS: "172.20.0.0/16", Cloud.GCP: "10.96.0.0/20"}
PODS_GCP = "10.128.0.0/14"


def provider_of(cluster: Cluster) -> Provider:
    """The provider that the cluster's CapacityTiers name."""
    return {Cloud.AWS: Provider.AWS, Cloud.GCP: Provider.GCP}.get(cluster.cloud, cluster.provider or Provider.GENERIC)


def notice_of(cluster: Cluster, pool: Pool) -> Seconds:
    """Seconds between the cloud's notice and the end of a node; 0 for capacity that is not reclaimed."""
    if pool.notice is not None:
        return pool.notice
    return NOTICE[provider_of(cluster)] if pool.capacity_type is CapacityType.SPOT else 0.0


def accelerators_of(cluster: Cluster, pool: Pool) -> frozenset[str]:
    """The accelerators of the pool's nodes: the one that it names, else those that its instances are known to have."""
    if pool.accelerator is not None:
        return frozenset({pool.accelerator.type})
    names = (*pool.instance_types, *pool.families)
    return frozenset(instances.accelerator_of(cluster.cloud, name) for name in names) - {""}


@dataclass(frozen=True, slots=True)
class NodePrice:
    """USD per hour of a node; None if the controller looks it up. `on_demand` is the basis of savings, if known."""

    hourly: float | None
    on_demand: float | None = None


def price_of(cluster: Cluster, pool: Pool) -> NodePrice | None:
    """The price of a node of the pool; None if it is unknown."""
    listed = prices.dearest(pool.instance_types) if cluster.cloud in WITH_STACK else None
    if pool.price is not None:
        return NodePrice(pool.price.per_node_hour, pool.price.on_demand_per_node_hour or listed)
    if pool.capacity_type is CapacityType.SPOT and cluster.cloud is Cloud.AWS:
        return NodePrice(None, listed)
    return NodePrice(listed) if pool.capacity_type is CapacityType.ON_DEMAND and listed is not None else None


def zones_of(cluster: Cluster) -> tuple[str, ...]:
    """The cluster's zones: those of the file, else the first three of the region."""
    return tuple(cluster.zones) or regions.default_zones(cluster.cloud, cluster.region or "")


def system_instance_of(cluster: Cluster) -> str:
    """The instance type of the system nodes."""
    return cluster.system.instance_type or SYSTEM_INSTANCE[cluster.cloud]


def reached_over_the_internet(fleet: Fleet, cluster: Cluster) -> bool:
    """Whether the controller in the home cluster connects to the public address of this cluster's API server (EKS)."""
    return cluster.cloud is Cloud.AWS and cluster.name != fleet.spec.home and bool(cluster.api.allowed)


def pod_range_of(cluster: Cluster) -> str:
    """The addresses of the pods of a GKE cluster."""
    return cluster.network.pods or PODS_GCP


def service_range_of(cluster: Cluster) -> str:
    """The addresses of the cluster's services."""
    return cluster.network.services or SERVICES[cluster.cloud]
