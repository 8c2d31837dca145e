"""Reads the versions of a cluster, as far as permissions allow, and compares them with the supported combinations.

1. The version of Kubernetes may be read by every account. KubeRay and Karpenter are found by the labels of their
   Deployments, under the names and in the namespaces that their documentation uses: the controller may read these
   Deployments and no others. Installations elsewhere stay unknown.
2. An unknown version is not a conflict, nor is a version of Kubernetes that is newer than the table.
3. A conflict is reported but does not stop any job.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spotladder import versions
from spotladder.clusters.errors import ApiError
from spotladder.resources import APIResource
from spotladder.workloads.network_policy import KUBERAY, KUBERAY_NAMESPACES

if TYPE_CHECKING:
    from spotladder.clusters.client import Client

DEPLOYMENTS = APIResource("apps", "v1", "deployments", "Deployment")
KARPENTER = "karpenter"
NAMESPACES: Mapping[str, tuple[str, ...]] = {
    KUBERAY: KUBERAY_NAMESPACES,
    KARPENTER: ("kube-system", "karpenter"),
}
"""The names and namespaces at which each Deployment is looked up, in this order."""

FIRST_KARPENTER = (1,)
"""The first version of Karpenter for AWS with the API that this project uses."""

_RELEASE = re.compile(r"v?([0-9]+\.[0-9]+\.[0-9]+)$")
_MINOR = re.compile(r"v?([0-9]+\.[0-9]+)")


@dataclass(frozen=True, slots=True)
class InstalledVersions:
    """The versions in a cluster: a minor of Kubernetes and releases of the others; None if unknown."""

    kubernetes: str | None = None
    kuberay: str | None = None
    karpenter: str | None = None

    def conflicts(self, ray: str | None = None) -> tuple[str, ...]:
        """Why these versions, and this Ray, are not compatible: one sentence each."""
        karpenter = self.karpenter
        if karpenter is not None and versions.parse(karpenter) < FIRST_KARPENTER:
            karpenter = None  # The provider for Google Cloud has its own versions and is not in the table.
        return versions.conflicts(kubernetes=self.kubernetes, karpenter=karpenter, kuberay=self.kuberay, ray=ray)


async def installed(client: Client) -> InstalledVersions:
    """The versions that the account may read. Raises ClusterUnreachable, Throttled."""
    found = _MINOR.match(await client.version())
    return InstalledVersions(
        found[1] if found else None, await _release(client, KUBERAY), await _release(client, KARPENTER)
    )


async def _release(client: Client, name: str) -> str | None:
    """The version in the labels of that Deployment; None if it is not found or must not be read."""
    for namespace in NAMESPACES[name]:
        try:
            labels = (await client.metadata(DEPLOYMENTS, name, namespace)).get("metadata", {}).get("labels") or {}
        except ApiError as error:
            if error.status in (403, 404):
                continue
            raise
        for label in ("app.kubernetes.io/version", "helm.sh/chart"):
            if found := _RELEASE.search(str(labels.get(label, ""))):
                return found[1]
        return None
    return None
