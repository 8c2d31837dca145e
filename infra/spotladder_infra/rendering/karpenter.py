"""NodePools of Karpenter, with an EC2NodeClass (AWS) or a GCENodeClass (Google Cloud) for each.

The rules for nodes of training jobs:
1. Only an empty node is given back, and only after `consolidateAfter`, so that a restarted job finds its nodes.
2. Karpenter replaces no node because of drift or use: budgets of 0 hold both. An upgrade waits for empty nodes.
3. One pool, one label, one taint: no pod of another tier lands on it.
"""

from __future__ import annotations

from typing import Any

from spotladder.core.durations import format_duration
from spotladder.core.model import CapacityType
from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.names import common_tags, discovery_tag, node_role
from spotladder_infra.rendering.labels import POOL, ROLE, Object, taints
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.defaults import zones_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import Pool


def node_pool(cluster: Cluster, pool: Pool) -> Object:
    """The NodePool of one pool."""
    aws = cluster.cloud is Cloud.AWS
    disruption = pool.disruption
    spec: dict[str, Any] = {
        "nodeClassRef": {
            "group": "karpenter.k8s.aws" if aws else "karpenter.k8s.gcp",
            "kind": "EC2NodeClass" if aws else "GCENodeClass",
            "name": pool.name,
        },
        "requirements": _requirements(cluster, pool),
        "expireAfter": format_duration(disruption.expire_after) if disruption.expire_after else "Never",
    }
    if tainted := taints(cluster, pool):
        spec["taints"] = tainted
    if pool.startup_taints:
        spec["startupTaints"] = [taint.model_dump(mode="json", by_alias=True) for taint in pool.startup_taints]
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
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": pool.name}, "spec": found}


def node_class(fleet: Fleet, cluster: Cluster, pool: Pool) -> Object:
    """The EC2NodeClass or GCENodeClass of one pool."""
    return (
        _ec2_node_class(fleet, cluster, pool) if cluster.cloud is Cloud.AWS else _gce_node_class(fleet, cluster, pool)
    )


def _requirements(cluster: Cluster, pool: Pool) -> list[Object]:
    family = "karpenter.k8s.aws/instance-family" if cluster.cloud is Cloud.AWS else "karpenter.k8s.gcp/instance-family"
    wanted = {
        "karpenter.sh/capacity-type": [str(pool.capacity_type)],
        "kubernetes.io/os": ["linux"],
        "kubernetes.io/arch": ["amd64"],
        "topology.kubernetes.io/zone": list(pool.zones) or list(zones_of(cluster)),
        "node.kubernetes.io/instance-type": pool.instance_types,
        family: pool.families,
    }
    return [{"key": key, "operator": "In", "values": list(values)} for key, values in wanted.items() if values]


def _ec2_node_class(fleet: Fleet, cluster: Cluster, pool: Pool) -> Object:
    spec: dict[str, Any] = {
        "amiSelectorTerms": [{"alias": pool.image or NODE_IMAGE}],
        "instanceProfile": node_role(cluster),
        "subnetSelectorTerms": [{"tags": discovery_tag(cluster)}],
        "securityGroupSelectorTerms": [{"tags": discovery_tag(cluster)}],
        "instanceStorePolicy": "RAID0",
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {
                    "volumeSize": f"{pool.disk_gi_b}Gi",
                    "volumeType": "gp3",
                    "encrypted": True,
                    "deleteOnTermination": True,
                },
            }
        ],
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        "tags": common_tags(fleet, cluster),
    }
    if pool.placement_group is not None:
        spec["placementGroupSelector"] = {"name": pool.placement_group}
    if pool.efa:
        spec["networkInterfaces"] = [
            {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"},
            {"networkCardIndex": 0, "deviceIndex": 1, "interfaceType": "efa-only"},
        ]
    if pool.capacity_type is CapacityType.RESERVED and pool.reservation is not None:
        reservation = pool.reservation
        terms: list[Object] = [{"id": name} for name in (*reservation.ids, *reservation.capacity_blocks)]
        if reservation.tags:
            terms.append({"tags": dict(reservation.tags)})
        spec["capacityReservationSelectorTerms"] = terms
    return _object("karpenter.k8s.aws/v1", "EC2NodeClass", pool.name, spec)


def _gce_node_class(fleet: Fleet, cluster: Cluster, pool: Pool) -> Object:
    spec: dict[str, Any] = {
        "imageSelectorTerms": [{"alias": pool.image or "ContainerOptimizedOS@latest"}],
        "serviceAccount": f"{node_role(cluster)}@{cluster.project}.iam.gserviceaccount.com",
        "networkConfig": {"networkInterfaces": [{"enableExternalIPAccess": False}]},
        "disks": [{"category": "pd-balanced", "sizeGiB": pool.disk_gi_b, "boot": True}],
        "labels": common_tags(fleet, cluster),
    }
    return _object("karpenter.k8s.gcp/v1alpha1", "GCENodeClass", pool.name, spec)


def _object(version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
