"""Rules for the networks of created clusters: their ranges, and what their nodes and the controller reach."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from datetime import date
from itertools import combinations

from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.defaults import pod_range_of, service_range_of
from spotladder_infra.topology.findings import Check, FleetFinding, with_stack
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.network import Nat

_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10")))
_INTERNET = "0.0.0.0/0"
_REGISTRIES = ("public.ecr.aws", "quay.io", "registry.k8s.io", "nvcr.io")
"""Registries of the images of Karpenter, KubeRay, JobSet and the device plugins."""


def network_ranges(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that no two ranges overlap, inside a cluster or between clusters, so that clusters can be peered."""
    ranges = [
        (
            ("spec", "clusters", index, "network", field),
            f"{cluster.name}'s {what}",
            cluster,
            ipaddress.IPv4Network(text),
        )
        for index, cluster in with_stack(fleet)
        for field, what, text in _ranges(cluster)
    ]
    for (__, name, owner, one), (path, other_name, other_owner, other) in combinations(ranges, 2):
        services = "services" in (name.rpartition(" ")[2], other_name.rpartition(" ")[2])
        if one.overlaps(other) and (owner is other_owner or not services):
            yield FleetFinding(path, f"{other} ({other_name}) overlaps {one} ({name}): choose another range")
    for index, cluster in with_stack(fleet):
        length = ipaddress.IPv4Network(cluster.network.cidr).prefixlen
        if cluster.cloud is Cloud.AWS and not _ranges_are_yours(cluster) and not 16 <= length <= 22:
            message = f"/{length} does not fit an EKS network (expected /16 to /22)"
            yield FleetFinding(("spec", "clusters", index, "network", "cidr"), f"{message}: choose another range")


def unreachable_endpoints(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Check that nodes without NAT reach the services of AWS through endpoints; they reach no public registry."""
    for index, cluster in with_stack(fleet):
        network = cluster.network
        if network.nat is Nat.NONE and fleet.spec.platform.mirror is None:
            message = (
                f"leaves the nodes without the registries of {', '.join(_REGISTRIES)}: mirror the images, and name the "
                "mirror in platform.mirror"
            )
            yield FleetFinding(("spec", "clusters", index, "network", "nat"), message, warning=True)
        if cluster.cloud is Cloud.AWS and network.nat is Nat.NONE and not network.interface_endpoints:
            message = "leaves the nodes without a route to ECR, STS and EC2: set interfaceEndpoints to true"
            yield FleetFinding(("spec", "clusters", index, "network", "nat"), message)


def reachable_members(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about an EKS cluster to which the controller in the home cluster has no route."""
    home = next((entry for entry in fleet.spec.clusters if entry.name == fleet.spec.home), None)
    for index, cluster in with_stack(fleet):
        if home is None or cluster is home or cluster.cloud is not Cloud.AWS:
            continue
        path = ("spec", "clusters", index, "api", "allowed")
        if cluster.existing is not None:
            message = (
                f"has an API server of yours: let the addresses of {home.name}, egress of its outputs, connect to it"
            )
            yield FleetFinding(("spec", "clusters", index, "existing"), message, warning=True)
        elif not cluster.api.allowed:
            message = (
                f"is empty: the controller in {home.name} reaches this API server only over a network that you "
                "connect; name the ranges of your offices, and bootstrap adds the addresses of the home cluster"
            )
            yield FleetFinding(path, message, warning=True)
        elif _ranges_are_yours(home):
            message = f"must have the addresses of {home.name}, whose network is yours: add those of its NAT"
            yield FleetFinding(path, message, warning=True)
        elif home.cloud in WITH_STACK and home.network.nat is Nat.NONE:
            message = f"does not help the controller in {home.name}, which has no NAT: connect the networks"
            yield FleetFinding(path, message, warning=True)


def api_access(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """Warn about an API server that the whole internet can reach; reject private ranges, which EKS does not accept."""
    for index, cluster in with_stack(fleet):
        for place, allowed in enumerate(cluster.api.allowed):
            if allowed == _INTERNET:
                message = "opens the API server to the whole internet: name the ranges of your offices"
                yield FleetFinding(("spec", "clusters", index, "api", "allowed", place), message, warning=True)
            elif cluster.cloud is Cloud.AWS and any(
                ipaddress.IPv4Network(allowed).subnet_of(part) for part in _PRIVATE
            ):
                message = (
                    f"{allowed} is private: EKS accepts public ranges only; the cluster's network always has access"
                )
                yield FleetFinding(("spec", "clusters", index, "api", "allowed", place), f"{message}; remove it")


NETWORK_CHECKS: tuple[Check, ...] = (network_ranges, unreachable_endpoints, reachable_members, api_access)


def _ranges_are_yours(cluster: Cluster) -> bool:
    """Whether the ranges of the network are not in the file."""
    return cluster.network.existing is not None or cluster.existing is not None


def _ranges(cluster: Cluster) -> Iterator[tuple[str, str, str]]:
    if _ranges_are_yours(cluster):
        return
    yield "cidr", "nodes", cluster.network.cidr
    if cluster.cloud is Cloud.GCP:
        yield "pods", "pods", pod_range_of(cluster)
    yield "services", "services", service_range_of(cluster)
