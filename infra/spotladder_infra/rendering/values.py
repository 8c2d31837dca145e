"""The values of the chart `spotladder-pools` for one cluster."""

from __future__ import annotations

from typing import Any

from spotladder.api.fields import plain_number
from spotladder_infra.outputs import StackIdentities, named
from spotladder_infra.rendering.computeclass import compute_class
from spotladder_infra.rendering.ec2nodeclass import ec2_node_class
from spotladder_infra.rendering.gcenodeclass import gce_node_class
from spotladder_infra.rendering.karpenter import node_pool
from spotladder_infra.rendering.labels import Object, as_object, has_karpenter, selectors, toleration, tolerations
from spotladder_infra.rendering.tiers import capacity_tiers
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet, Team
from spotladder_infra.topology.pool import Pool

MONTHLY_BUDGET = "spotladder.io/monthly-budget-usd"

_NODE_CLASS = {Cloud.AWS: ec2_node_class, Cloud.GCP: gce_node_class}


def values(fleet: Fleet, cluster: Cluster, stack: StackIdentities | None = None) -> Object:
    """The values of the chart for the cluster's pools. The CapacityTiers of the whole fleet go to its home cluster.

    Args:
        stack: The identities of the applied stack. Default: by the names that the stack gives them.
    """
    stack = stack or named(cluster)
    provisioned = [pool for pool in cluster.pools if has_karpenter(cluster, pool)]
    classes = [
        _NODE_CLASS[cluster.cloud](fleet, cluster, pool, stack) for pool in provisioned if pool.node_class is None
    ]
    compute_classes = cluster.pools if cluster.cloud is Cloud.GCP and not provisioned else []
    return {
        "nodeClasses": classes,
        "nodePools": [node_pool(cluster, pool) for pool in provisioned],
        "computeClasses": [compute_class(cluster, pool) for pool in compute_classes],
        "capacityTiers": capacity_tiers(fleet) if cluster.name == fleet.spec.home else [],
        "teams": _teams(fleet, cluster),
        "volumes": _volumes(fleet, cluster),
        "prePull": [_pre_pull(cluster, pool) for pool in cluster.pools if pool.pre_pull],
    }


def _pre_pull(cluster: Cluster, pool: Pool) -> Object:
    return {
        "pool": pool.name,
        "images": list(dict.fromkeys(pool.pre_pull)),
        "nodeSelector": selectors(cluster, pool),
        "tolerations": tolerations(cluster, pool) + [toleration(as_object(taint)) for taint in pool.startup_taints],
    }


def _volumes(fleet: Fleet, cluster: Cluster) -> list[Object]:
    """A volume for each team that may mount it."""
    return [
        {"namespace": team.name, "name": volume.name, "spec": volume.spec}
        for volume in cluster.volumes
        for team in fleet.teams_of(cluster)
        if not volume.teams or team.name in volume.teams
    ]


def _teams(fleet: Fleet, cluster: Cluster) -> list[Object]:
    """Every team submits its jobs in the home cluster. A team without capacity in the home cluster may not run pods
    there."""
    present = fleet.teams_of(cluster)
    return [_team(cluster, team, runs_pods=team in present) for team in fleet.teams_with_namespace(cluster)]


def _team(cluster: Cluster, team: Team, *, runs_pods: bool) -> Object:
    quota: dict[str, Any] = {} if runs_pods else {"pods": "0"}
    if team.quota.cpu is not None:
        quota["requests.cpu"] = team.quota.cpu
    if team.quota.memory is not None:
        quota["requests.memory"] = team.quota.memory
    if team.quota.accelerators is not None:
        quota["requests.nvidia.com/gpu"] = str(team.quota.accelerators)
    identity = cluster.service_account_annotations.get(team.name)
    annotations = {} if team.budget is None else {MONTHLY_BUDGET: plain_number(team.budget)}
    return {
        "namespace": team.name,
        "podSecurity": str(team.pod_security),
        "annotations": annotations,
        "serviceAccount": {"name": team.service_account, **({"annotations": identity} if identity else {})},
        "groups": list(team.kubernetes_groups),
        "users": list(team.users),
        "quota": quota,
    }
