"""The GKE cluster: private nodes, DNS endpoint, Dataplane V2, Workload Identity and autoscaling; or an existing one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdktn_provider_google.container_cluster import (
    ContainerCluster,
    ContainerClusterClusterAutoscalingResourceLimits,
    ContainerClusterMasterAuthorizedNetworksConfigCidrBlocks,
)
from cdktn_provider_google.data_google_container_cluster import DataGoogleContainerCluster
from cdktn_provider_google.data_google_project import DataGoogleProject
from cdktn_provider_google.kms_crypto_key_iam_member import KmsCryptoKeyIamMember

from spotladder_infra.constructs.gcp.network import CreatedNetwork
from spotladder_infra.topology.cluster import Autoscaler, Cluster
from spotladder_infra.topology.defaults import MAX_ACCELERATORS, accelerators_of, zones_of

METRICS = ["SYSTEM_COMPONENTS", "DCGM"]
"""Metrics of the nodes and, of their NVIDIA GPUs, those of DCGM: the default of GKE since 1.32.1-gke.1357000
(docs.cloud.google.com/kubernetes-engine/docs/how-to/dcgm-metrics, read on 2026-11-30)."""

LOGS = ["SYSTEM_COMPONENTS", "WORKLOADS", "APISERVER", "CONTROLLER_MANAGER", "SCHEDULER"]
LARGEST = {"cpu": 10_000, "memory": 100_000}
"""Bounds of node auto-provisioning in CPUs and GiB, too high to apply, as MAX_ACCELERATORS."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """`name` depends on the resource `cluster`, so that resources that use the name are created after the cluster."""

    cluster: Any
    name: str
    endpoint: str
    issuer: str


def control_plane(scope: Any, cluster: Cluster, network: CreatedNetwork, node: Any, *, member: bool) -> ControlPlane:
    """The cluster itself, without nodes. The controller in the home cluster connects to a `member` with a token of a
    service account of Kubernetes, which the DNS endpoint refuses by default.
    """
    made = ContainerCluster(
        scope,
        "cluster",
        name=cluster.name,
        location=cluster.region,
        node_locations=list(zones_of(cluster)),
        min_master_version=cluster.kubernetes,
        release_channel={"channel": "REGULAR"},
        network=network.network,
        subnetwork=network.subnetwork,
        networking_mode="VPC_NATIVE",
        ip_allocation_policy={
            "cluster_secondary_range_name": network.pods,
            "services_secondary_range_name": network.services,
        },
        datapath_provider="ADVANCED_DATAPATH",
        # Without IP endpoints GKE itself sets enable_private_endpoint, and the provider does not send it.
        private_cluster_config={"enable_private_nodes": True, "enable_private_endpoint": not cluster.api.allowed},
        control_plane_endpoints_config={
            "dns_endpoint_config": {"allow_external_traffic": True, "enable_k8_s_tokens_via_dns": member},
            "ip_endpoints_config": {"enabled": bool(cluster.api.allowed)},
        },
        master_authorized_networks_config=_authorized_networks(cluster),
        workload_identity_config={"workload_pool": f"{cluster.project}.svc.id.goog"},
        enable_shielded_nodes=True,
        enable_intranode_visibility=True,
        remove_default_node_pool=True,
        initial_node_count=1,
        node_config=node_config(node),
        cluster_autoscaling=_autoscaling(cluster, node),
        addons_config={
            "gcp_filestore_csi_driver_config": {"enabled": True},
            "gcs_fuse_csi_driver_config": {"enabled": True},
            "http_load_balancing": {"disabled": True},
        },
        logging_config={"enable_components": LOGS},
        monitoring_config={"enable_components": METRICS, "managed_prometheus": {"enabled": True}},
        master_auth={"client_certificate_config": {"issue_client_certificate": False}},
        security_posture_config={"mode": "BASIC"},  # Google has removed the scan for vulnerabilities
        deletion_protection=cluster.deletion_protection,
        **_encryption(scope, cluster),
        lifecycle={"ignore_changes": ["node_config", "initial_node_count"]},
    )
    return _described(made, made.id)


def existing_cluster(scope: Any, cluster: Cluster) -> tuple[CreatedNetwork, ControlPlane]:
    """A cluster that the stack only reads, with its network."""
    project, location = cluster.project or "", cluster.location
    found = DataGoogleContainerCluster(scope, "cluster", name=cluster.cloud_name, location=location, project=project)
    path = f"projects/{project}/locations/{location}/clusters/{cluster.cloud_name}"
    return CreatedNetwork(found.network, found.subnetwork), _described(found, path)


def _described(cluster: Any, path: str) -> ControlPlane:
    """The parts of a resource or data source of a cluster with this path."""
    endpoint = f"${{{cluster.fqn}.control_plane_endpoints_config[0].dns_endpoint_config[0].endpoint}}"
    return ControlPlane(cluster, cluster.name, endpoint, f"https://container.googleapis.com/v1/{path}")


def _encryption(scope: Any, cluster: Cluster) -> dict[str, Any]:
    """Encrypts the cluster's secrets with the user's key, which the agent of GKE may use."""
    if cluster.kms_key is None:
        return {}
    number = DataGoogleProject(scope, "key-project", project_id=cluster.project).number
    granted = KmsCryptoKeyIamMember(
        scope,
        "cluster-key-access",
        crypto_key_id=cluster.kms_key,
        role="roles/cloudkms.cryptoKeyEncrypterDecrypter",
        member=f"serviceAccount:service-{number}@container-engine-robot.iam.gserviceaccount.com",
    )
    return {"database_encryption": {"state": "ENCRYPTED", "key_name": cluster.kms_key}, "depends_on": [granted]}


def _authorized_networks(cluster: Cluster) -> dict[str, Any] | None:
    """The addresses that may connect to the IP endpoints; None if only the DNS endpoint is open, which ignores them."""
    if not cluster.api.allowed:
        return None
    return {
        "cidr_blocks": [
            ContainerClusterMasterAuthorizedNetworksConfigCidrBlocks(cidr_block=allowed)
            for allowed in cluster.api.allowed
        ],
        "gcp_public_cidrs_access_enabled": False,
    }


def node_config(node: Any) -> dict[str, Any]:
    """The settings of all nodes, also of those of the default pool, which GKE requires and which is removed at once."""
    return {
        "service_account": node.email,
        "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "workload_metadata_config": {"mode": "GKE_METADATA"},
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        "metadata": {"disable-legacy-endpoints": "true"},
    }


def _autoscaling(cluster: Cluster, node: Any) -> dict[str, Any]:
    """Node auto-provisioning, which ComputeClasses need; disabled if Karpenter creates the nodes."""
    if cluster.provisioner is Autoscaler.KARPENTER:
        return {"enabled": False}
    kinds = {kind: MAX_ACCELERATORS for pool in cluster.pools for kind in sorted(accelerators_of(cluster, pool))}
    limits = [
        ContainerClusterClusterAutoscalingResourceLimits(resource_type=kind, maximum=most)
        for kind, most in {**LARGEST, **kinds}.items()
    ]
    return {
        "enabled": True,
        "autoscaling_profile": "BALANCED",
        "resource_limits": limits,
        "auto_provisioning_locations": list(zones_of(cluster)),
        "auto_provisioning_defaults": {
            "service_account": node.email,
            "oauth_scopes": ["https://www.googleapis.com/auth/cloud-platform"],
            "image_type": "COS_CONTAINERD",
            "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
            "management": {"auto_repair": True, "auto_upgrade": True},
        },
    }
