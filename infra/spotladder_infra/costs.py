"""The cost of a fleet while no job runs, and of an hour of each of its tiers. Pure; on-demand list prices."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder_infra.facts import prices
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.defaults import SYSTEM_DISK_GIB, NodePrice, price_of, system_instance_of, zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.network import Nat
from spotladder_infra.topology.pool import Pool, PoolRole

INTERFACE_ENDPOINTS = 8
"""Endpoints of an EKS cluster with `interfaceEndpoints`; a test keeps it equal to what the stack creates."""


@dataclass(frozen=True, slots=True)
class StandingCost:
    """A resource that costs money while no job runs. `hourly` is USD per hour for all resources of the kind; None if
    unknown."""

    what: str
    count: int
    hourly: float | None


@dataclass(frozen=True, slots=True)
class Rate:
    """USD per hour of one node of a pool of workers.

    `hourly` is None if the controller looks up the price of a spot node. `disk` is the root volume with its
    throughput and IOPS, which the other prices do not include; 0 for existing nodes.
    """

    pool: str
    cluster: str
    capacity_type: str
    hourly: float | None
    on_demand: float | None
    disk: float = 0.0


def idle(fleet: Fleet, cluster: Cluster) -> list[StandingCost]:
    """The cost of the resources that a cluster's stack creates, without worker and head nodes."""
    found = _cluster(cluster) if cluster.created else []
    if cluster.cloud is Cloud.AWS:
        bucket = fleet.created_bucket(cluster)
        own = cluster.created and cluster.kms_key is None, bucket is not None and bucket.kms_key is None
        keys = sum(own) + int(bucket is not None and bucket.replicate_to is not None)
        found.append(StandingCost("KMS keys", keys, keys * prices.KMS_KEY_MONTH / prices.HOURS_PER_MONTH))
    return found


def _cluster(cluster: Cluster) -> list[StandingCost]:
    cloud = str(cluster.cloud)
    zones = len(zones_of(cluster))
    instance = system_instance_of(cluster)
    nodes = cluster.system.count if cluster.cloud is Cloud.AWS else zones
    node_hour = prices.NODE_HOUR.get(instance)
    found = [
        StandingCost("control plane", 1, prices.CONTROL_PLANE_HOUR[cloud]),
        StandingCost(f"system nodes ({instance})", nodes, None if node_hour is None else nodes * node_hour),
        StandingCost(
            f"system disks ({SYSTEM_DISK_GIB} GiB)", nodes, nodes * _gib_hours(cluster.cloud, SYSTEM_DISK_GIB)
        ),
    ]
    gateways = {Nat.NONE: 0, Nat.SINGLE: 1, Nat.PER_ZONE: zones if cluster.cloud is Cloud.AWS else 1}[
        cluster.network.nat
    ]
    if gateways and cluster.network.existing is None:
        per_node = min(nodes * prices.CLOUD_NAT_NODE_HOUR, prices.CLOUD_NAT_MOST_HOUR)
        hourly = gateways * prices.NAT_GATEWAY_HOUR if cluster.cloud is Cloud.AWS else per_node
        found.append(StandingCost("NAT gateways", gateways, hourly))
        found.append(StandingCost("public addresses of NAT", gateways, gateways * prices.PUBLIC_ADDRESS_HOUR))
    if cluster.cloud is Cloud.AWS and cluster.network.interface_endpoints:
        count = INTERFACE_ENDPOINTS * zones
        found.append(StandingCost("interface endpoints", count, count * prices.INTERFACE_ENDPOINT_HOUR))
    return found


def rates(fleet: Fleet) -> list[Rate]:
    """The price of a node of every pool of workers, in the order of the file."""
    return [
        _rate(cluster, pool)
        for cluster in fleet.spec.clusters
        for pool in cluster.pools
        if pool.role is PoolRole.WORKERS
    ]


def _rate(cluster: Cluster, pool: Pool) -> Rate:
    price = price_of(cluster, pool) or NodePrice(None)
    on_demand = price.on_demand or prices.dearest(pool.instance_types)
    return Rate(pool.name, cluster.name, str(pool.capacity_type), price.hourly, on_demand, _disk(cluster, pool))


def _disk(cluster: Cluster, pool: Pool) -> float:
    """USD per hour of the root volume of a node."""
    if cluster.cloud not in WITH_STACK:
        return 0.0
    size = _gib_hours(cluster.cloud, pool.disk_gi_b)
    if cluster.cloud is not Cloud.AWS:
        return size
    throughput = max(0, pool.disk_throughput - prices.DISK_THROUGHPUT_FREE) * prices.DISK_THROUGHPUT_MONTH
    iops = max(0, pool.disk_iops - prices.DISK_IOPS_FREE) * prices.DISK_IOPS_MONTH
    return size + (throughput + iops) / prices.HOURS_PER_MONTH


def _gib_hours(cloud: Cloud, gib: int) -> float:
    return gib * prices.DISK_GIB_MONTH[cloud] / prices.HOURS_PER_MONTH
