"""Checks of the EKS add-ons: their names, their pinned versions, and whether EKS offers these."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from spotladder.api.problems import quoted
from spotladder_infra.facts import addons
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.findings import FleetFinding, with_stack
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.network import Nat


def version_of(cluster: Cluster, addon: str) -> str | None:
    """The version of the fleet file, or the recorded one; None where EKS chooses."""
    return cluster.addons.get(addon) or addons.PINNED.get(cluster.kubernetes, {}).get(addon)


def installed(cluster: Cluster) -> tuple[str, ...]:
    """The add-ons of the stack."""
    return (*addons.INSTALLED, *(name for name in addons.OPTIONAL if name in cluster.addons))


def addon_versions(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """The add-ons of the file are those of the stack, and each has a pinned version."""
    known = (*addons.INSTALLED, *addons.OPTIONAL)
    for index, cluster in with_stack(fleet):
        if cluster.cloud is not Cloud.AWS or not cluster.created:
            continue
        path = ("spec", "clusters", index)
        for name in cluster.addons:
            if name not in known:
                message = f"is not an add-on that the stack installs (expected one of {', '.join(known)})"
                yield FleetFinding((*path, "addons", name), f"{message}: remove {quoted(name)}")
        unknown = [name for name in addons.INSTALLED if version_of(cluster, name) is None]
        if unknown:
            message = f"has no recorded version of the EKS add-ons {', '.join(unknown)} (table of {addons.AS_OF})"
            yield FleetFinding(
                (*path, "kubernetes"), f"{message}: EKS chooses its default; pin them under addons", warning=True
            )
        if addons.OBSERVABILITY in cluster.addons and cluster.network.nat is Nat.NONE:
            message = (
                "does not reach CloudWatch with nat none, which has no endpoint for it: remove it, or choose a NAT"
            )
            yield FleetFinding((*path, "addons", addons.OBSERVABILITY), message, warning=True)
        for place, volume in enumerate(cluster.volumes):
            needed = addons.DRIVERS.get(volume.driver)
            if needed is not None and needed not in cluster.addons:
                message = f"needs the EKS add-on {needed}: name it with its version under addons"
                yield FleetFinding((*path, "volumes", place, "spec"), message)


def addon_findings(client: Any, index: int, cluster: Cluster) -> Iterator[FleetFinding]:
    """Add-ons that EKS does not offer for the cluster's Kubernetes version. `client` is one for EKS in its region."""
    for name in installed(cluster):
        if problem := _problem(client, cluster, name):
            yield FleetFinding(("spec", "clusters", index, "addons", name), problem)


def _problem(client: Any, cluster: Cluster, name: str) -> str:
    """Why the cluster cannot have this add-on, and the remedy; "" if it can."""
    pages = client.get_paginator("describe_addon_versions").paginate(
        kubernetesVersion=cluster.kubernetes, addonName=name
    )
    offered = {
        entry["addonVersion"]: any(found.get("defaultVersion") for found in entry.get("compatibilities", []))
        for page in pages
        for addon in page["addons"]
        for entry in addon["addonVersions"]
    }
    wanted = version_of(cluster, name)
    default = next((version for version, is_default in offered.items() if is_default), None)
    if wanted is None and default is None:
        return f"EKS offers no version of add-on {name}: choose another Kubernetes version"
    if wanted is None or wanted in offered:
        return ""
    remedy = f"set addons.{name} to {default}" if default else "choose another Kubernetes version"
    return f"EKS does not offer add-on {name} {wanted} for this Kubernetes version: {remedy}"
