"""Defaults of a fleet file that depend on other fields."""

from __future__ import annotations

from spotladder.api.capacitytier import Provider
from spotladder.core.model import CapacityType, Seconds
from spotladder.workloads.providers import NOTICE
from spotladder_infra.facts import regions
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.pool import Pool

SYSTEM_INSTANCE = {Cloud.AWS: "m7i.large", Cloud.GCP: "e2-standard-4"}
SYSTEM_DISK_GIB = 50
"""Size of the root volume of a system node in GiB."""

SERVICES = {Cloud.AWS: "172.20.0.0/16", Cloud.GCP: "10.96.0.0/20"}
PODS_GCP = "10.128.0.0/14"


def provider_of(cluster: Cluster) -> Provider:
    """The provider that the cluster's CapacityTiers name."""
    return {Cloud.AWS: Provider.AWS, Cloud.GCP: Provider.GCP}.get(cluster.cloud, Provider.GENERIC)


def notice_of(cluster: Cluster, pool: Pool) -> Seconds:
    """Seconds between the cloud's notice and the end of a node; 0 for capacity that is not reclaimed."""
    if pool.notice is not None:
        return pool.notice
    return NOTICE[provider_of(cluster)] if pool.capacity_type is CapacityType.SPOT else 0.0


def zones_of(cluster: Cluster) -> tuple[str, ...]:
    """The cluster's zones: those of the file, else the first three of the region."""
    return tuple(cluster.zones) or regions.default_zones(cluster.cloud, cluster.region or "")


def system_instance_of(cluster: Cluster) -> str:
    """The instance type of the system nodes."""
    return cluster.system.instance_type or SYSTEM_INSTANCE[cluster.cloud]


def pod_range_of(cluster: Cluster) -> str:
    """The addresses of the pods of a GKE cluster."""
    return cluster.network.pods or PODS_GCP


def service_range_of(cluster: Cluster) -> str:
    """The addresses of the cluster's services."""
    return cluster.network.services or SERVICES[cluster.cloud]
