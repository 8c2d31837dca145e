"""The versions of Terraform's providers: those that a stack supports, and the one that earlier runs have chosen. The
first run chooses the newest supported version and writes it to a lock file beside the fleet's state. Later runs use the
same version for all stacks of the cloud, even if a changed fleet file needs a newer one.
"""

from __future__ import annotations

from pathlib import Path

from spotladder_infra.topology.cluster import Cloud, Cluster

AWS = ">= 5.95.0, < 7.0.0"
"""Only arguments that all of these versions have are used; the tests apply the stack with version 5."""

PROTECTED_AWS = ">= 6.9.0, < 7.0.0"
"""Versions that support deletion protection of clusters."""

GOOGLE = ">= 7.9.0, < 8.0.0"
"""Versions that let tokens of Kubernetes use the DNS endpoint of a cluster."""


def required(cluster: Cluster) -> str:
    """The versions of the cloud's provider that the stack of a cluster supports, as a constraint."""
    if cluster.cloud is Cloud.GCP:
        return GOOGLE
    return PROTECTED_AWS if cluster.deletion_protection else AWS


def lock_file(cloud: Cloud, state: Path) -> Path:
    """The file with the chosen versions for all stacks of a cloud."""
    return state / "providers" / f"{cloud}.lock.hcl"
