"""The clusters that tiers may be in, by name. `home` is the one with the TieredJobs.

A `ConnectionSource` returns the connection to one cluster. It is called repeatedly, because the connection changes
when a kubeconfig's Secret is rotated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock
from spotladder.clusters.cloud_cluster import Cloud, CloudCluster
from spotladder.clusters.cluster_address import ClusterAddress, EksAddress, GkeAddress
from spotladder.clusters.connection import Connection
from spotladder.clusters.kubeconfig import KubeconfigFile, KubeconfigSecret


class ConnectionSource(Protocol):
    """The source of the connection to one cluster."""

    async def connection(self, *, fresh: bool = False) -> Connection:
        """The current connection; the same object while nothing has changed.

        `fresh`: the previous connection does not work; read it again. Raises EnvironmentFailure, ClusterUnreachable if
        the connection is unknown now.
        """


def sources(
    addresses: Mapping[str, ClusterAddress], *, home: Client, namespace: str, clock: Clock
) -> dict[str, ConnectionSource]:
    """The source of each cluster's connection. Secrets are read from that namespace of the home cluster."""
    return {
        name: source_of(address, home=home, namespace=namespace, clock=clock) for name, address in addresses.items()
    }


def source_of(address: ClusterAddress, *, home: Client, namespace: str, clock: Clock) -> ConnectionSource:
    """The source for one address."""
    if (eks := address.eks) is not None:
        return CloudCluster(lambda: _eks(eks, clock), "aws")
    if (gke := address.gke) is not None:
        return CloudCluster(lambda: _gke(gke, clock), "gcp")
    assert address.kubeconfig  # noqa: S101 – an address is exactly one of the three
    if address.kubeconfig.file:
        return KubeconfigFile(Path(address.kubeconfig.file), address.kubeconfig.context)
    return KubeconfigSecret(
        home,
        namespace,
        address.kubeconfig.secret_name or "",
        key=address.kubeconfig.key,
        context=address.kubeconfig.context,
        clock=clock,
    )


def _eks(address: EksAddress, clock: Clock) -> Cloud:
    from spotladder.clusters.eks import Eks  # noqa: PLC0415 – imported only for EKS clusters

    return Eks(address.name, address.region, role=address.role_arn or "", clock=clock)


def _gke(address: GkeAddress, clock: Clock) -> Cloud:
    from spotladder.clusters.gke import Gke  # noqa: PLC0415 – imported only for GKE clusters

    return Gke(address.project, address.location, address.name, clock=clock)
