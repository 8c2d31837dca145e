"""NodePools of Karpenter.

The rules for nodes of training jobs:
1. Karpenter removes only empty nodes, and only after `consolidateAfter`, so that a restarted job finds its nodes.
2. Karpenter replaces no node because of drift or low use: disruption budgets of 0 prevent both. An upgrade waits for
   empty nodes.
3. Each pool has its own label and taint, so that no pod of another tier is scheduled on it.
"""

from __future__ import annotations

from typing import Any

from spotladder.core.durations import format_duration
from spotladder_infra.rendering.labels import POOL, ROLE, Object, as_object, custom_resource, taints
from spotladder_infra.topology.cluster import WITH_STACK, Cloud, Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.pool import Pool


def node_pool(cluster: Cluster, pool: Pool) -> Object:
    """The NodePool of one pool."""
    disruption = pool.disruption
    spec: dict[str, Any] = {
        "nodeClassRef": _node_class(cluster, pool),
        "requirements": _requirements(cluster, pool),
        "expireAfter": format_duration(disruption.expire_after) if disruption.expire_after else "Never",
    }
    if tainted := taints(cluster, pool):
        spec["taints"] = tainted
    if pool.startup_taints:
        spec["startupTaints"] = [as_object(taint) for taint in pool.startup_taints]
    if disruption.termination_grace_period is not None:
        spec["terminationGracePeriod"] = format_duration(disruption.termination_grace_period)
    found: dict[str, Any] = {
        "template": {"metadata": {"labels": {POOL: pool.name, ROLE: str(pool.role), **pool.labels}}, "spec": spec},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": format_duration(disruption.consolidate_after),
            "budgets": [
                {"nodes": "0", "reasons": ["Underutilized", "Drifted"]},
                {"nodes": "100%", "reasons": ["Empty"]},
            ],
        },
    }
    if limits := pool.limits.model_dump(mode="json", by_alias=True, exclude_none=True):
        found["limits"] = {key: str(value) for key, value in limits.items()}
    return custom_resource("karpenter.sh/v1", "NodePool", pool.name, found)


def _node_class(cluster: Cluster, pool: Pool) -> Object:
    if pool.node_class is not None:
        return pool.node_class.model_dump(mode="json")
    if cluster.cloud is Cloud.AWS:
        return {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": pool.name}
    return {"group": "karpenter.k8s.gcp", "kind": "GCENodeClass", "name": pool.name}


def _requirements(cluster: Cluster, pool: Pool) -> list[Object]:
    family = "karpenter.k8s.aws/instance-family" if cluster.cloud is Cloud.AWS else "karpenter.k8s.gcp/instance-family"
    zones = zones_of(cluster) if cluster.cloud in WITH_STACK else ()
    wanted = {
        "karpenter.sh/capacity-type": [str(pool.capacity_type)],
        "kubernetes.io/os": ["linux"],
        "kubernetes.io/arch": ["amd64"],
        "topology.kubernetes.io/zone": list(pool.zones) or list(zones),
        "node.kubernetes.io/instance-type": pool.instance_types,
        family: pool.families,
    }
    return [{"key": key, "operator": "In", "values": list(values)} for key, values in wanted.items() if values]
