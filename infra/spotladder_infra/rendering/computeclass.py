"""ComputeClasses of GKE: one for each pool, so that the controller decides when a job falls back, and not GKE."""

from __future__ import annotations

from typing import Any

from spotladder.core.model import CapacityType
from spotladder_infra.facts import instances
from spotladder_infra.names import node_role, service_account
from spotladder_infra.rendering.gcenodeclass import IMAGE_CACHE
from spotladder_infra.rendering.labels import POOL, ROLE, Object, as_object, custom_resource
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
            "serviceAccount": service_account(node_role(cluster), cluster.project or ""),
            "imageStreaming": {"enabled": True},
            "nodeLabels": {POOL: pool.name, ROLE: str(pool.role), **pool.labels},
        },
    }
    if pool.taints:
        spec["nodePoolConfig"]["taints"] = [as_object(taint) for taint in pool.taints]
    return custom_resource("cloud.google.com/v1", "ComputeClass", pool.name, spec)


def _priorities(cluster: Cluster, pool: Pool) -> list[Object]:
    shared: dict[str, Any] = {"storage": _storage(pool)}
    if pool.reservation is None:  # a reservation names its zone, and GKE refuses both together
        shared["location"] = {"zones": list(pool.zones) or list(zones_of(cluster))}
    else:
        specific = [{"name": name} for name in pool.reservation.ids]
        shared["reservations"] = {"affinity": "Specific", "specific": specific}
    if pool.capacity_type is CapacityType.SPOT:
        shared["spot"] = True
    if pool.flex_start:
        shared["flexStart"] = {"enabled": True}
    if pool.placement_group is not None:
        shared["placement"] = {"policyName": pool.placement_group}
    machines = [_machine(cluster, pool, name) for name in pool.instance_types]
    families = [{"machineFamily": name, **_gpu(cluster, pool, name)} for name in pool.families]
    return [{**machine, **shared} for machine in (*machines, *families)]


def _machine(cluster: Cluster, pool: Pool, name: str) -> Object:
    """A machine type; one with TPUs by their kind, number and topology, from which GKE derives the machine type."""
    accelerators = _gpu(cluster, pool, name)
    if pool.tpu_topology is None:
        return {"machineType": name, **accelerators}
    return {"tpu": {**accelerators["gpu"], "topology": pool.tpu_topology}}


def _gpu(cluster: Cluster, pool: Pool, name: str) -> Object:
    """The accelerators of a machine type, as the pool or the tables name them; 1 of a family or of an unknown type."""
    given = pool.accelerator
    kind = given.type if given is not None else instances.accelerator_of(cluster.cloud, name)
    if not kind:
        return {}
    count = (given.count if given is not None else None) or instances.number_of_accelerators(cluster.cloud, name) or 1
    return {"gpu": {"type": kind, "count": count}}


def _storage(pool: Pool) -> Object:
    found: dict[str, Any] = {"bootDiskSize": pool.disk_gi_b}
    if pool.secondary_boot_disk is not None:
        _, project, _, _, image = pool.secondary_boot_disk.split("/")
        found["secondaryBootDisks"] = [{"diskImageName": image, "project": project, "mode": IMAGE_CACHE}]
    return found
