"""All hops of a cluster: its bring-up in its cloud, the way of a notice, and the way from the home cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spotladder.core.model import CapacityType
from spotladder_infra.bringup import eks, gke
from spotladder_infra.bringup.hop import Hop, PlannedCluster, hop
from spotladder_infra.names import HOME_EGRESS, kubeconfig_secret
from spotladder_infra.rendering.controller import controller_values
from spotladder_infra.rendering.tiers import capacity_tiers
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.defaults import reached_over_the_internet
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import PoolRole

BRINGUP = {Cloud.AWS: eks.hops, Cloud.GCP: gke.hops}


def hops(fleet: Fleet, cluster: Cluster, stack: Mapping[str, Any]) -> list[Hop]:
    """The hops of a created cluster, in the order in which they happen. `stack` is its `cdk.tf.json`."""
    sight = PlannedCluster(fleet, cluster, stack)
    found = [*BRINGUP[cluster.cloud](sight), *_notices(sight)]
    return found if cluster.name == fleet.spec.home else [*found, *_from_home(sight)]


def _notices(sight: PlannedCluster) -> Iterator[Hop]:
    """The last hop of a notice: from the node to the job."""
    pools = sight.cluster.pools
    spot = [pool.name for pool in pools if pool.role is PoolRole.WORKERS and pool.capacity_type is CapacityType.SPOT]
    announced = {tier["metadata"]["name"] for tier in capacity_tiers(sight.fleet) if tier["spec"].get("notice")}
    if spot:
        needs = {f"tier_{name}": [f"CapacityTier/{name}"] if name in announced else [] for name in spot}
        yield hop("a notice reaches the job", **needs)


def _from_home(sight: PlannedCluster) -> Iterator[Hop]:
    """The way of the controller in the home cluster to this member."""
    fleet, cluster, home = sight.fleet, sight.cluster, sight.fleet.cluster(sight.fleet.spec.home)
    yours = sight.existing_cluster
    if cluster.cloud is Cloud.GCP:
        endpoint = "google_container_cluster"
        address = sight.having(endpoint, '"allow_external_traffic": true')
        certificate, token = ["a public authority"], sight.having(endpoint, '"enable_k8s_tokens_via_dns": true')
    else:
        plane = sight.having("aws_eks_cluster")
        address = (
            sight.having("aws_eks_cluster", f"var.{HOME_EGRESS}") if reached_over_the_internet(fleet, cluster) else []
        )
        certificate, token = plane, plane
    address, certificate, token = (yours or found for found in (address, certificate, token))
    member, secret = controller_values(fleet, cluster), kubeconfig_secret(cluster.name)
    known = controller_values(fleet, home).get("clusters", {})
    yield hop(f"the controller in {home.name} reaches the API server", address=address)
    yield hop(
        f"the controller in {home.name} trusts and is trusted",
        certificate=certificate,
        token=token,
        kubeconfig=[f"Secret/{secret} in {home.name}"] if cluster.name in known else [],
    )
    allowed = bool(member.get("member", {}).get("enabled")) and bool(member["namespaces"])
    yield hop(f"the controller in {home.name} may run pods", RBAC=sight.release("controller") if allowed else [])
