"""Checks of the EKS add-ons: their names, their pinned versions, and whether EKS offers these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from spotladder.api.problems import quoted
from spotladder_infra.facts import addons
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.findings import FleetFinding, created
from spotladder_infra.topology.fleet import Fleet


@dataclass(frozen=True, slots=True)
class OfferedAddon:
    """An add-on of a cluster. `wanted` is None where EKS chooses; `default` is None when EKS names none."""

    name: str
    wanted: str | None
    default: str | None
    offered: bool

    @property
    def problem(self) -> str:
        """Why the cluster cannot have this add-on, and the remedy; "" if it can."""
        if self.wanted is None and self.default is None:
            return f"EKS offers no version of add-on {self.name}: choose another Kubernetes version"
        if self.offered or self.wanted is None:
            return ""
        remedy = f"set addons.{self.name} to {self.default}" if self.default else "choose another Kubernetes version"
        return f"EKS does not offer add-on {self.name} {self.wanted} for this Kubernetes version: {remedy}"


def version_of(cluster: Cluster, addon: str) -> str | None:
    """The version of the fleet file, or the recorded one; None where EKS chooses."""
    return cluster.addons.get(addon) or addons.pinned(addon, cluster.kubernetes)


def addon_versions(fleet: Fleet, _: date) -> Iterator[FleetFinding]:
    """The add-ons of the file are those of the stack, and each has a pinned version."""
    for index, cluster in created(fleet):
        if cluster.cloud is not Cloud.AWS:
            continue
        path = ("spec", "clusters", index)
        for name in cluster.addons:
            if name not in addons.INSTALLED:
                message = f"is not an add-on that the stack installs (expected one of {', '.join(addons.INSTALLED)})"
                yield FleetFinding((*path, "addons", name), f"{message}: remove {quoted(name)}")
        unknown = [name for name in addons.INSTALLED if version_of(cluster, name) is None]
        if unknown:
            message = f"has no recorded version of the EKS add-ons {', '.join(unknown)} (table of {addons.AS_OF})"
            yield FleetFinding(
                (*path, "kubernetes"), f"{message}: EKS chooses its default; pin them under addons", warning=True
            )


def offered_addons(client: Any, cluster: Cluster) -> list[OfferedAddon]:
    """The versions that EKS offers for the add-ons of the cluster. `client` is one for EKS in the cluster's region."""
    return [_offered(client, cluster, name) for name in addons.INSTALLED]


def addon_findings(client: Any, index: int, cluster: Cluster) -> Iterator[FleetFinding]:
    """Versions of add-ons that EKS does not offer for the cluster's Kubernetes version."""
    for addon in offered_addons(client, cluster):
        if addon.problem:
            yield FleetFinding(("spec", "clusters", index, "addons", addon.name), addon.problem)


def _offered(client: Any, cluster: Cluster, name: str) -> OfferedAddon:
    pages = client.get_paginator("describe_addon_versions").paginate(
        kubernetesVersion=cluster.kubernetes, addonName=name
    )
    versions = [entry for page in pages for addon in page["addons"] for entry in addon["addonVersions"]]
    default = next(
        (
            entry["addonVersion"]
            for entry in versions
            if any(found.get("defaultVersion") for found in entry.get("compatibilities", []))
        ),
        None,
    )
    wanted = version_of(cluster, name)
    return OfferedAddon(name, wanted, default, any(entry["addonVersion"] == wanted for entry in versions))
