"""The values of the chart `spotladder-pools` for one cluster."""

from __future__ import annotations

from typing import Any

from spotladder_infra.rendering.computeclass import compute_class
from spotladder_infra.rendering.karpenter import node_class, node_pool
from spotladder_infra.rendering.labels import Object, has_karpenter
from spotladder_infra.rendering.tiers import capacity_tiers
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet, Team

MONTHLY_BUDGET = "spotladder.io/monthly-budget-usd"


def values(fleet: Fleet, cluster: Cluster) -> Object:
    """What is installed for the cluster's pools. The CapacityTiers of the whole fleet go to its home cluster."""
    karpenter = has_karpenter(cluster)
    compute_classes = cluster.cloud is Cloud.GCP and not karpenter
    return {
        "nodeClasses": [node_class(fleet, cluster, pool) for pool in cluster.pools] if karpenter else [],
        "nodePools": [node_pool(cluster, pool) for pool in cluster.pools] if karpenter else [],
        "computeClasses": [compute_class(cluster, pool) for pool in cluster.pools] if compute_classes else [],
        "capacityTiers": capacity_tiers(fleet) if cluster.name == fleet.spec.home else [],
        "teams": [_team(team) for team in fleet.teams_of(cluster)],
    }


def _team(team: Team) -> Object:
    quota: dict[str, Any] = {}
    if team.quota.cpu is not None:
        quota["requests.cpu"] = team.quota.cpu
    if team.quota.memory is not None:
        quota["requests.memory"] = team.quota.memory
    if team.quota.accelerators is not None:
        quota["requests.nvidia.com/gpu"] = str(team.quota.accelerators)
    annotations = {} if team.budget is None else {MONTHLY_BUDGET: f"{team.budget:g}"}
    return {
        "namespace": team.name,
        "podSecurity": str(team.pod_security),
        "annotations": annotations,
        "serviceAccount": {"name": team.service_account},
        "groups": list(team.groups),
        "users": list(team.users),
        "quota": quota,
    }
