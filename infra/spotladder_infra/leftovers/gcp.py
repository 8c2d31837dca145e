"""The remaining resources of a cluster in a Google Cloud project, found by labels, by its network and by names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spotladder_infra.google import COMPUTE, IAM, REGISTRY, STORAGE, Google
from spotladder_infra.leftovers.resource import Leftover
from spotladder_infra.names import karpenter_account, karpenter_role, node_role, service_account
from spotladder_infra.topology.cluster import Autoscaler, Cluster
from spotladder_infra.topology.fleet import Fleet

NODEPOOL = "karpenter-sh-nodepool"
"""The label that karpenter-provider-gcp sets on its instances."""

_AGGREGATED = {
    "instances": "instance",
    "disks": "disk",
    "forwardingRules": "forwarding rule",
    "networkEndpointGroups": "network endpoint group",
    "routers": "router",
    "subnetworks": "subnetwork",
    "addresses": "address",
}
"""Collections of the compute API that exist by zone or region. Addresses follow the resources that use them."""

_BALANCER_RULE = "k8s-fw-"
"""Prefix of the name of a load balancer's firewall rule; the name of its forwarding rule follows."""


def find(fleet: Fleet, cluster: Cluster, keep_checkpoints: bool) -> list[Leftover]:
    """All resources of the cluster in its project. Raises EnvironmentFailure."""
    cloud = Google()
    bucket = fleet.created_bucket(cluster) if keep_checkpoints else None
    return [
        *_compute(cloud, cluster),
        *_named(cloud, cluster),
        *(entry for entry in _buckets(cloud, cluster) if bucket is None or entry.identifier != bucket.name),
    ]


def nodes(cluster: Cluster) -> list[Leftover]:
    """Instances that Karpenter launched and that are not about to stop. Raises EnvironmentFailure."""
    running = (
        (place, entry)
        for place, entry in _aggregated(Google(), cluster, "instances")
        if entry.get("status") != "STOPPING" and _is_of(cluster, place, entry)
    )
    return [entry for entry in (_leftover("instance", *found) for found in running) if entry.kind == "node"]


def _compute(cloud: Google, cluster: Cluster) -> Iterator[Leftover]:
    """What has the labels of the cluster or is in its network. An existing cluster is in a network of yours."""
    network = f"projects/{cluster.project}/global/networks/{cluster.name}"
    rules = _rules(cloud, cluster, network) if cluster.created else []
    if cluster.created and cloud.find(COMPUTE, network) is not None:
        yield Leftover("network", cluster.name)
    yield from (Leftover("firewall rule", name) for name in rules)
    balancers = {name.removeprefix(_BALANCER_RULE) for name in rules if name.startswith(_BALANCER_RULE)}
    links: set[str] = set()
    for collection, kind in _AGGREGATED.items():
        for place, entry in _aggregated(cloud, cluster, collection):
            inside = cluster.created and _uses(entry, network)
            ours = _is_of(cluster, place, entry) or inside or not links.isdisjoint(entry.get("users", ()))
            if ours or (collection == "forwardingRules" and entry["name"] in balancers):
                links.add(str(entry.get("selfLink", "")))
                yield _leftover(kind, place, entry)


def _rules(cloud: Google, cluster: Cluster, network: str) -> list[str]:
    """The firewall rules of the network."""
    return [
        rule["name"]
        for page in cloud.pages(COMPUTE, f"projects/{cluster.project}/global/firewalls")
        for rule in page.get("items", [])
        if str(rule.get("network", "")).endswith(network)
    ]


def _aggregated(cloud: Google, cluster: Cluster, collection: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The resources of all zones and regions, each with its zone or region."""
    path = f"projects/{cluster.project}/aggregated/{collection}"
    for page in cloud.pages(COMPUTE, path, returnPartialSuccess="true"):
        for scope, found in page.get("items", {}).items():
            for entry in found.get(collection, []):
                yield scope.rpartition("/")[2], entry


def _is_of(cluster: Cluster, place: str, entry: dict[str, Any]) -> bool:
    """Whether the labels name the cluster: the labels of spotladder, or those of GKE, whose cluster names are unique in
    a region. Nodes of yours in an existing cluster have the latter as well."""
    labels = entry.get("labels", {})
    if labels.get("spotladder-cluster") == cluster.name:
        return True
    if not cluster.created:
        return False
    region = cluster.region or ""
    in_place = place == region or place.startswith(f"{region}-")
    return in_place and labels.get("goog-k8s-cluster-name") == cluster.name


def _uses(entry: dict[str, Any], network: str) -> bool:
    """Whether the resource is in the cluster's network."""
    interfaces = entry.get("networkInterfaces", [])
    return any(str(one.get("network", "")).endswith(f"/{network}") for one in (entry, *interfaces))


def _leftover(kind: str, place: str, entry: dict[str, Any]) -> Leftover:
    pool = entry.get("labels", {}).get(NODEPOOL) if kind == "instance" else None
    return Leftover("node" if pool else kind, entry["name"], f"{pool}, {place}" if pool else place)


def _named(cloud: Google, cluster: Cluster) -> Iterator[Leftover]:
    """Resources that are named after the cluster."""
    project, region = cluster.project or "", cluster.region or ""
    if cluster.created and cloud.cluster(project, region, cluster.name) is not None:
        yield Leftover("GKE cluster", cluster.name, region)
    accounts = [node_role(cluster)]
    if cluster.provisioner is Autoscaler.KARPENTER:
        accounts.append(karpenter_account(cluster))
        role = cloud.find(IAM, f"projects/{project}/roles/{karpenter_role(cluster)}")
        if role is not None and not role.get("deleted"):
            yield Leftover("custom role", karpenter_role(cluster))
    for account in accounts:
        email = service_account(account, project)
        if cloud.find(IAM, f"projects/{project}/serviceAccounts/{email}") is not None:
            yield Leftover("service account", email)
    if cluster.image_repository:
        name = f"projects/{project}/locations/{region}/repositories/{cluster.name}"
        if cloud.find(REGISTRY, name) is not None:
            yield Leftover("image repository", cluster.name, region)


def _buckets(cloud: Google, cluster: Cluster) -> Iterator[Leftover]:
    for page in cloud.pages(STORAGE, "b", project=cluster.project or ""):
        for entry in page.get("items", []):
            if entry.get("labels", {}).get("spotladder-cluster") == cluster.name:
                yield Leftover("bucket", entry["name"], entry.get("location", ""))
