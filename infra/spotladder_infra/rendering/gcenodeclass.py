"""GCENodeClasses of karpenter-provider-gcp (alpha): image, network and disks of the nodes of one pool."""

from __future__ import annotations

from typing import Any

from spotladder_infra.names import common_tags
from spotladder_infra.outputs import StackIdentities
from spotladder_infra.rendering.labels import Object, custom_resource
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool

IMAGE_CACHE = "CONTAINER_IMAGE_CACHE"

DEFAULT_IMAGE = "ContainerOptimizedOS@latest"
"""The node image of pools without `image`."""


def gce_node_class(fleet: Fleet, cluster: Cluster, pool: Pool, stack: StackIdentities) -> Object:
    """The GCENodeClass of one pool. The provider has no image streaming and no placement policies."""
    disks: list[dict[str, Any]] = [{"category": "pd-balanced", "sizeGiB": pool.disk_gi_b, "boot": True}]
    if pool.secondary_boot_disk is not None:
        disks.append({"secondaryBootImage": pool.secondary_boot_disk, "secondaryBootMode": IMAGE_CACHE})
    spec: dict[str, Any] = {
        "imageSelectorTerms": [{"alias": pool.image or DEFAULT_IMAGE}],
        "serviceAccount": stack.nodes,
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True, "enableVtpm": True},
        "networkConfig": {"enablePrivateNodes": True},
        "disks": disks,
        "labels": common_tags(fleet, cluster),
    }
    return custom_resource("karpenter.k8s.gcp/v1alpha1", "GCENodeClass", pool.name, spec)
