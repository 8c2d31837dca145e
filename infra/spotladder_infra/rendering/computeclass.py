"""ComputeClasses of GKE: one for each pool, so that the controller and not GKE decides when a job falls back."""

from __future__ import annotations

from typing import Any

from spotladder.core.model import CapacityType
from spotladder_infra.names import node_role
from spotladder_infra.rendering.labels import POOL, ROLE, Object
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.pool import Pool

SECONDS_PER_MINUTE = 60


def compute_class(cluster: Cluster, pool: Pool) -> Object:
    """The ComputeClass of one pool."""
    spec: dict[str, Any] = {
        "priorities": _priorities(cluster, pool),
        "nodePoolAutoCreation": {"enabled": True},
        "activeMigration": {"optimizeRulePriority": False},
        "whenUnsatisfiable": "DoNotScaleUp",
        "autoscalingPolicy": {
            "consolidationDelayMinutes": max(1, round(pool.disruption.consolidate_after / SECONDS_PER_MINUTE))
        },
        "nodePoolConfig": {
            "serviceAccount": f"{node_role(cluster)}@{cluster.project}.iam.gserviceaccount.com",
            "imageStreaming": {"enabled": True},
            "nodeLabels": {POOL: pool.name, ROLE: str(pool.role), **pool.labels},
        },
    }
    if pool.taints:
        spec["nodePoolConfig"]["taints"] = [taint.model_dump(mode="json", by_alias=True) for taint in pool.taints]
    return {
        "apiVersion": "cloud.google.com/v1",
        "kind": "ComputeClass",
        "metadata": {"name": pool.name},
        "spec": spec,
    }


def _priorities(cluster: Cluster, pool: Pool) -> list[Object]:
    shared: dict[str, Any] = {"location": {"zones": list(pool.zones) or list(zones_of(cluster))}}
    if pool.capacity_type is CapacityType.SPOT:
        shared["spot"] = True
    if pool.accelerator is not None:
        shared["gpu"] = {"type": pool.accelerator.type, "count": pool.accelerator.count}
    if pool.placement_group is not None:
        shared["placement"] = {"policyName": pool.placement_group}
    if pool.reservation is not None:
        specific = [{"name": name} for name in pool.reservation.ids]
        shared["reservations"] = {"affinity": "Specific", "specific": specific}
    machines = [{"machineType": name} for name in pool.instance_types]
    families = [{"machineFamily": name} for name in pool.families]
    return [{**machine, **shared} for machine in (*machines, *families)]
