"""The form of an object, the label and taint of the nodes of a pool, and the selectors and tolerations of its tier."""

from __future__ import annotations

from typing import Any

from spotladder_infra.topology.cluster import WITH_STACK, Autoscaler, Cloud, Cluster
from spotladder_infra.topology.defaults import accelerators_of
from spotladder_infra.topology.pool import Pool, PoolRole, Taint

POOL = "spotladder.io/pool"
ROLE = "spotladder.io/role"
NODEPOOL = "karpenter.sh/nodepool"
COMPUTE_CLASS = "cloud.google.com/compute-class"
TPU_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
ACCELERATOR_TAINTS = {"nvidia": "nvidia.com/gpu", "tpu": "google.com/tpu"}
"""The taint of nodes with accelerators, by the beginning of the accelerator's name."""

Object = dict[str, Any]


def custom_resource(api_version: str, kind: str, name: str, spec: Object) -> Object:
    """A custom resource of the cluster."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def has_karpenter(cluster: Cluster, pool: Pool) -> bool:
    """Whether Karpenter creates the pool's nodes."""
    own = cluster.cloud in WITH_STACK and cluster.provisioner is Autoscaler.KARPENTER
    return own or pool.node_class is not None


def selectors(cluster: Cluster, pool: Pool) -> dict[str, str]:
    """The node labels that only this pool's nodes have."""
    if has_karpenter(cluster, pool):
        return {NODEPOOL: pool.name}
    if cluster.cloud is Cloud.GCP:
        if pool.tpu_topology is None:
            return {COMPUTE_CLASS: pool.name}
        (kind,) = accelerators_of(cluster, pool)
        return {COMPUTE_CLASS: pool.name, TPU_ACCELERATOR: kind, TPU_TOPOLOGY: pool.tpu_topology}
    return dict(pool.selectors)


def taints(cluster: Cluster, pool: Pool) -> list[Object]:
    """The taints of the pool's nodes. GKE taints the nodes of a ComputeClass itself."""
    own = (
        []
        if pool.role is PoolRole.HEADS or not has_karpenter(cluster, pool)
        else [as_object(Taint(key=POOL, value=pool.name))]
    )
    return own + [as_object(taint) for taint in pool.taints]


def tolerations(cluster: Cluster, pool: Pool) -> list[Object]:
    """The tolerations of the pods of the pool's tier: the pool's taints, and that of nodes with GPUs or TPUs."""
    found = [toleration(taint) for taint in taints(cluster, pool)]
    if cluster.cloud is Cloud.GCP and not has_karpenter(cluster, pool):
        found.append({"key": COMPUTE_CLASS, "operator": "Equal", "value": pool.name, "effect": "NoSchedule"})
    for vendor, key in ACCELERATOR_TAINTS.items():
        if any(kind.startswith(vendor) for kind in accelerators_of(cluster, pool)):
            found.append({"key": key, "operator": "Exists", "effect": "NoSchedule"})
    return found


def toleration(taint: Object) -> Object:
    """The toleration of exactly this taint."""
    return {"key": taint["key"], "operator": "Equal", "value": taint.get("value", ""), "effect": taint["effect"]}


def as_object(taint: Taint) -> Object:
    """The taint as a Kubernetes object. A NodePool rejects an empty value, so it is left out."""
    found = {"key": taint.key, "value": taint.value, "effect": str(taint.effect)}
    return {key: value for key, value in found.items() if value}
