"""Checks against the clouds: current zones, versions, and offers of instance types. Read-only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from spotladder.api.problems import Path, quoted
from spotladder.versions import parse
from spotladder_infra.amazon import Connect
from spotladder_infra.facts.regions import WITHOUT_EKS
from spotladder_infra.google import COMPUTE, CONTAINER, Google
from spotladder_infra.topology.addon_checks import addon_findings
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.findings import FleetFinding
from spotladder_infra.topology.pool import Pool


def aws(connect: Connect, index: int, cluster: Cluster) -> Iterator[FleetFinding]:
    """Zones, instance types, add-ons and versions that AWS does not offer the account. Raises errors of botocore."""
    path = ("spec", "clusters", index)
    client, eks = connect("ec2", cluster.region or ""), connect("eks", cluster.region or "")
    in_region = {zone["ZoneName"]: zone["ZoneId"] for zone in client.describe_availability_zones()["AvailabilityZones"]}
    for place, zone in enumerate(cluster.zones):
        if zone not in in_region:
            yield FleetFinding(
                (*path, "zones", place), f"{quoted(zone)} is not a zone of this account in {cluster.region}"
            )
    if cluster.created and (lacking := set(zones_of(cluster)) - {*in_region, *cluster.zones}):
        message = (
            f"this account has no zone {', '.join(sorted(lacking))}, which is a default: name two or more in zones (it "
            f"has {', '.join(sorted(in_region))})"
        )
        yield FleetFinding((*path, "region"), message)
    for zone in zones_of(cluster) if cluster.created else ():
        if (found := in_region.get(zone)) in WITHOUT_EKS:
            message = f"{zone} is {found} in this account, where EKS creates no control plane: name other zones"
            yield FleetFinding((*path, "zones"), message)
    offered = _offered(client, cluster)
    for place, pool in enumerate(cluster.pools):
        wanted = set(pool.zones or zones_of(cluster))
        for at, name in enumerate(pool.instance_types):
            zones = offered.get(name, set())
            if not zones & wanted:
                where = f"it is in {', '.join(sorted(zones))}" if zones else f"nowhere in {cluster.region}"
                message = f"{name} is not offered in {', '.join(sorted(wanted))} ({where}): choose other zones or types"
                yield FleetFinding((*path, "pools", place, "instanceTypes", at), message)
        for at, family in enumerate(pool.families):
            if not any(name.startswith(f"{family}.") and zones & wanted for name, zones in offered.items()):
                message = f"no instance of family {family} is offered in {', '.join(sorted(wanted))}"
                yield FleetFinding(
                    (*path, "pools", place, "families", at), f"{message}: choose other zones or families"
                )
    if cluster.created:
        yield from _eks_version(eks, path, cluster)
        yield from addon_findings(eks, index, cluster)


def _eks_version(client: Any, path: Path, cluster: Cluster) -> Iterator[FleetFinding]:
    found = client.describe_cluster_versions(clusterVersions=[cluster.kubernetes])["clusterVersions"]
    status = found[0].get("versionStatus") if found else "UNSUPPORTED"
    if status == "EXTENDED_SUPPORT":
        message = f"EKS {cluster.kubernetes} has extended support only, which costs extra: choose a newer version"
        yield FleetFinding((*path, "kubernetes"), message, warning=True)
    elif status != "STANDARD_SUPPORT":
        message = f"EKS does not offer {cluster.kubernetes} in {cluster.region}: choose another version"
        yield FleetFinding((*path, "kubernetes"), message)


def _offered(client: Any, cluster: Cluster) -> dict[str, set[str]]:
    """The zones of each instance type that the pools name directly or by its family."""
    wanted = {name for pool in cluster.pools for name in pool.instance_types}
    if families := sorted({f"{family}.*" for pool in cluster.pools for family in pool.families}):
        wanted |= {entry["InstanceType"] for entry in paged(client, "describe_instance_types", families)}
    found: dict[str, set[str]] = {}
    for offer in paged(client, "describe_instance_type_offerings", sorted(wanted), LocationType="availability-zone"):
        found.setdefault(offer["InstanceType"], set()).add(offer["Location"])
    return found


def paged(client: Any, operation: str, instance_types: Sequence[str], **more: str) -> Iterator[dict[str, Any]]:
    """The entries of an operation for these instance types; at most 200 names fit into a filter."""
    for start in range(0, len(instance_types), 200):
        names = list(instance_types[start : start + 200])
        pages = client.get_paginator(operation).paginate(Filters=[{"Name": "instance-type", "Values": names}], **more)
        for page in pages:
            yield from page.get("InstanceTypes") or page.get("InstanceTypeOfferings") or ()


def gcp(cloud: Google, index: int, cluster: Cluster) -> Iterator[FleetFinding]:
    """Zones, machine types, accelerators and versions that Google Cloud does not offer the project in its region.

    Raises EnvironmentFailure.
    """
    path = ("spec", "clusters", index)
    region = cloud.find(COMPUTE, f"projects/{cluster.project}/regions/{cluster.region}")
    if region is None:
        yield FleetFinding(
            (*path, "region"), f"project {cluster.project} has no region {cluster.region}: correct one of them"
        )
        return
    zones = {url.rpartition("/")[2] for url in region.get("zones", [])}
    for place, zone in enumerate(cluster.zones):
        if zone not in zones:
            message = f"{quoted(zone)} is not a zone of {cluster.region} (it has {', '.join(sorted(zones))})"
            yield FleetFinding((*path, "zones", place), f"{message}: choose one of them")
    if cluster.created and cluster.kubernetes not in (minors := offered_minors(cloud, cluster)):
        message = f"GKE does not offer {cluster.kubernetes} in {cluster.region}: choose one of {', '.join(minors)}"
        yield FleetFinding((*path, "kubernetes"), message)
    for place, pool in enumerate(cluster.pools):
        wanted = [zone for zone in pool.zones or zones_of(cluster) if zone in zones]
        for at, name in enumerate(pool.instance_types):
            machines = machine_types(cloud, cluster, name, wanted)
            yield from _machine_findings(pool, name, machines, (*path, "pools", place, "instanceTypes", at))
        for at, family in enumerate(pool.families):
            if wanted and not any(_has_family(cloud, cluster, zone, family) for zone in wanted):
                message = f"no machine of family {family} is offered in {', '.join(wanted)}"
                yield FleetFinding(
                    (*path, "pools", place, "families", at), f"{message}: choose other zones or families"
                )


def machine_types(cloud: Google, cluster: Cluster, name: str, zones: Iterable[str]) -> dict[str, dict[str, Any] | None]:
    """The machine type in each zone; None in a zone that does not offer it. Raises EnvironmentFailure."""
    return {zone: cloud.find(COMPUTE, f"projects/{cluster.project}/zones/{zone}/machineTypes/{name}") for zone in zones}


def _has_family(cloud: Google, cluster: Cluster, zone: str, family: str) -> bool:
    path = f"projects/{cluster.project}/zones/{zone}/machineTypes"
    found = cloud.find(COMPUTE, path, filter=f"name eq {family}-.*", maxResults="1") or {}
    return bool(found.get("items"))


def offered_minors(cloud: Google, cluster: Cluster) -> list[str]:
    """The minor versions that GKE's Regular channel offers in the region, newest first. Raises EnvironmentFailure."""
    found = cloud.call(CONTAINER, "GET", f"projects/{cluster.project}/locations/{cluster.region}/serverConfig")
    channels = {entry.get("channel"): entry.get("validVersions", []) for entry in found.get("channels", [])}
    versions = channels.get("REGULAR") or found.get("validMasterVersions", [])
    minors = {".".join(version.split(".")[:2]) for version in versions}
    return sorted(minors, key=parse, reverse=True)


def _machine_findings(
    pool: Pool, name: str, machines: dict[str, dict[str, Any] | None], path: Path
) -> Iterator[FleetFinding]:
    offered = {zone: machine for zone, machine in machines.items() if machine is not None}
    if machines and not offered:
        yield FleetFinding(path, f"{name} is not offered in {', '.join(sorted(machines))}: choose other zones or types")
        return
    for zone, machine in offered.items():
        has = {
            entry["guestAcceleratorType"]: entry["guestAcceleratorCount"] for entry in machine.get("accelerators", [])
        }
        wanted = pool.accelerator
        if wanted is not None and has and (wanted.type not in has or wanted.count not in (None, has[wanted.type])):
            listed = ", ".join(f"{count} {kind}" for kind, count in has.items())
            named = wanted.type if wanted.count is None else f"{wanted.count} {wanted.type}"
            yield FleetFinding(path, f"{name} has {listed} in {zone}, not {named}: correct the pool's accelerator")
            return
