"""The system nodes: on-demand, tainted, for the controllers and CoreDNS."""

from __future__ import annotations

from typing import Any

from cdktn_provider_google.container_node_pool import ContainerNodePool, ContainerNodePoolNodeConfigTaint

from spotladder_infra.constructs.gcp.control_plane import ControlPlane, node_config
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import SYSTEM_DISK_GIB, system_instance_of, zones_of


def system_nodes(scope: Any, cluster: Cluster, plane: ControlPlane, node: Any) -> None:
    """One pool over the cluster's zones. GKE puts its own system pods onto nodes with this taint."""
    ContainerNodePool(
        scope,
        "system",
        name="system",
        cluster=plane.name,
        location=cluster.region,
        node_locations=list(zones_of(cluster)),
        initial_node_count=1,
        autoscaling={
            "min_node_count": 1,
            "max_node_count": cluster.system.count,
            "location_policy": "BALANCED",
        },
        management={"auto_repair": True, "auto_upgrade": True},
        upgrade_settings={"strategy": "SURGE", "max_surge": 1, "max_unavailable": 0},
        node_config={
            **node_config(node),
            "machine_type": system_instance_of(cluster),
            "image_type": "COS_CONTAINERD",
            "disk_type": "pd-balanced",
            "disk_size_gb": SYSTEM_DISK_GIB,
            "labels": {"spotladder.io/pool": "system"},
            "taint": [ContainerNodePoolNodeConfigTaint(key="CriticalAddonsOnly", value="true", effect="NO_SCHEDULE")],
            "gcfs_config": {"enabled": True},
        },
        lifecycle={"ignore_changes": ["initial_node_count"]},
    )
