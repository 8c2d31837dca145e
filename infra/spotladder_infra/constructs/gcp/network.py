"""A VPC-native network: one subnet with ranges for pods and services, and Cloud NAT for private nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdktn_provider_google.compute_address import ComputeAddress
from cdktn_provider_google.compute_network import ComputeNetwork
from cdktn_provider_google.compute_router import ComputeRouter
from cdktn_provider_google.compute_router_nat import ComputeRouterNat
from cdktn_provider_google.compute_subnetwork import ComputeSubnetwork, ComputeSubnetworkSecondaryIpRange

from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import pod_range_of, service_range_of
from spotladder_infra.topology.network import Nat

PODS = "pods"
SERVICES = "services"


@dataclass(frozen=True, slots=True)
class CreatedNetwork:
    """Self links, and the names of the secondary ranges; `egress` has the public address of Cloud NAT, if it is a fixed
    one."""

    network: str
    subnetwork: str
    egress: tuple[str, ...] = ()
    pods: str = PODS
    services: str = SERVICES


def network(scope: Any, cluster: Cluster, owner: str, *, fixed_address: bool) -> CreatedNetwork:
    """The network of a cluster, described by `owner`, or the existing one that the file names.

    `single` and `per-zone` are the same: Cloud NAT is regional. Webhooks need no firewall rule: the control plane of a
    new cluster reaches the nodes through Private Service Connect. Only one with VPC Network Peering has an address
    range, which GKE's own rule restricts to ports 443 and 10250 (private-service-connect and firewall-rules in
    cloud.google.com/kubernetes-engine/docs/concepts, read on 2026-11-30).

    Args:
        fixed_address: Reserve the address of Cloud NAT, so that other clusters can allow it. One address is enough for
            1,008 nodes, with 64 ports each.
    """
    if (given := cluster.network.existing) is not None:
        return CreatedNetwork(
            given.network or "", given.subnetwork or "", pods=given.pods_range, services=given.services_range
        )
    name = cluster.name
    egress: tuple[str, ...] = ()
    made = ComputeNetwork(
        scope, "network", name=name, description=owner, auto_create_subnetworks=False, routing_mode="REGIONAL"
    )
    subnet = ComputeSubnetwork(
        scope,
        "nodes",
        name=f"{name}-nodes",
        network=made.id,
        region=cluster.region,
        ip_cidr_range=cluster.network.cidr,
        private_ip_google_access=True,
        secondary_ip_range=[
            ComputeSubnetworkSecondaryIpRange(range_name=PODS, ip_cidr_range=pod_range_of(cluster)),
            ComputeSubnetworkSecondaryIpRange(range_name=SERVICES, ip_cidr_range=service_range_of(cluster)),
        ],
        log_config={"aggregation_interval": "INTERVAL_10_MIN", "flow_sampling": 0.1},
    )
    if cluster.network.nat is not Nat.NONE:
        router = ComputeRouter(scope, "router", name=name, network=made.id, region=cluster.region)
        addresses: dict[str, Any] = {"nat_ip_allocate_option": "AUTO_ONLY"}
        if fixed_address:
            fixed = ComputeAddress(scope, "nat-address", name=f"{name}-nat", region=cluster.region)
            addresses = {"nat_ip_allocate_option": "MANUAL_ONLY", "nat_ips": [fixed.self_link]}
            egress = (fixed.address,)
        ComputeRouterNat(
            scope,
            "nat",
            name=name,
            router=router.name,
            region=cluster.region,
            **addresses,
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
        )
    return CreatedNetwork(made.id, subnet.id, egress)
