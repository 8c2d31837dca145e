"""The remaining resources of a cluster in its account or project: those that cost money or prevent the deletion of its
network. Terraform knows only its own resources. This package finds all others by tags, labels, networks and names:
nodes that Karpenter has launched, disks and load balancers that Kubernetes has created, and resources that an
interrupted apply has created but not written to its state.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from spotladder.errors import EnvironmentFailure
from spotladder_infra.leftovers import aws, gcp
from spotladder_infra.leftovers.resource import Leftover
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

__all__ = ["Leftover", "find", "nodes"]

_CLOUDS: dict[Cloud, ModuleType] = {Cloud.AWS: aws, Cloud.GCP: gcp}


def find(fleet: Fleet, cluster: Cluster, *, keep_checkpoints: bool = True) -> list[Leftover]:
    """All resources of a created cluster in its account (or project) and region.

    Args:
        keep_checkpoints: Leave out the checkpoint bucket that the cluster's stack created, and its key.

    Raises:
        EnvironmentFailure: Credentials or a package are missing, or the cloud refuses.
    """
    return _listed(cluster, lambda: _CLOUDS[cluster.cloud].find(fleet, cluster, keep_checkpoints))


def nodes(cluster: Cluster) -> list[Leftover]:
    """Instances that Karpenter launched and that still run. Raises as `find`."""
    return _listed(cluster, lambda: _CLOUDS[cluster.cloud].nodes(cluster))


def _listed(cluster: Cluster, question: Callable[[], list[Leftover]]) -> list[Leftover]:
    try:
        return sorted(set(question()))
    except EnvironmentFailure as error:
        raise EnvironmentFailure(f"cluster {cluster.name}: what is left cannot be listed: {error}") from None
