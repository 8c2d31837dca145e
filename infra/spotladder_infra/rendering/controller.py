"""The values of the chart `spotladder`: the controller in the home cluster, and its permissions in the others."""

from __future__ import annotations

from typing import Any

from spotladder.api.address import ANY
from spotladder.api.capacitytier import HOME
from spotladder_infra.names import CONTROLLER_ACCOUNT, kubeconfig_secret
from spotladder_infra.rendering.labels import POOL, Object
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet, Team

SYSTEM_POOL = "system"
"""Value of the label POOL on the system nodes."""

SYSTEM_TAINT = "CriticalAddonsOnly"
SCHEMES = {Cloud.AWS: "s3", Cloud.GCP: "gs"}


def controller_values(fleet: Fleet, cluster: Cluster) -> Object:
    """The values of the controller's chart in the cluster.

    In the home cluster, the service account has the name to which the identities of the stacks are bound (EKS Pod
    Identity, Workload Identity Federation), so it needs no annotation. In every member cluster, the controller has a
    service account with a token, which the home cluster stores in a kubeconfig: this works between any two clouds.
    """
    shared: dict[str, Any] = {"namespaces": _namespaces(fleet, cluster)}
    if fleet.spec.platform.kueue:
        shared["rbac"] = {"kueue": True}
    if cluster.name != fleet.spec.home:
        return {"member": {"enabled": True}, **shared}
    found: dict[str, Any] = {
        "serviceAccount": {"name": CONTROLLER_ACCOUNT},
        **shared,
        "tenancy": tenancy(fleet),
        "clusters": {
            entry.name: {"kubeconfig": {"secretName": kubeconfig_secret(entry.name)}}
            for entry in fleet.spec.clusters
            if entry.name != fleet.spec.home
        },
    }
    budgets = {team.name: team.budget for team in fleet.spec.teams if team.budget is not None}
    if budgets:
        found["prometheusRule"] = {"monthlyBudgets": budgets}
    image = fleet.spec.platform.image
    if image is not None:
        found["image"] = image.model_dump(mode="json", by_alias=True, exclude_none=True)
    if cluster.cloud is Cloud.AWS:
        found["env"] = [{"name": "AWS_REGION", "value": cluster.region or ""}]
    return {**found, **placement(cluster)}


def placement(cluster: Cluster) -> Object:
    """Schedules a controller on the system nodes of a created cluster, because its other nodes are temporary."""
    if not cluster.created:
        return {}
    return {
        "nodeSelector": {POOL: SYSTEM_POOL},
        "tolerations": [{"key": SYSTEM_TAINT, "operator": "Exists"}],
    }


SMOKE = "default"
"""The namespace of a smoke job that names none."""


def _namespaces(fleet: Fleet, cluster: Cluster) -> list[str]:
    """The namespaces whose jobs may run in the cluster: those of its teams; without teams, all."""
    if not fleet.spec.teams:
        return [ANY]
    teams = [team.name for team in fleet.teams_with_namespace(cluster)]
    return teams if fleet.spec.rollout.smoke is None else [*teams, SMOKE]


def tenancy(fleet: Fleet) -> list[Object]:
    """For each team, its clusters, and its prefix of every bucket that a cluster of the team uses. A smoke job runs in
    every cluster; without teams, every job may."""
    if not fleet.spec.teams:
        return [{"namespaces": [ANY], "clusters": [ANY]}]
    found: list[Object] = []
    for team in fleet.spec.teams:
        clusters = [entry.name for entry in fleet.spec.clusters if team in fleet.teams_of(entry)]
        rule: Object = {
            "namespaces": [team.name],
            "clusters": [HOME if name == fleet.spec.home else name for name in clusters],
        }
        if buckets := [bucket for bucket in fleet.spec.buckets if team in fleet.teams_using(bucket)]:
            rule["uris"] = [team_prefix(bucket, team) for bucket in buckets]
        found.append(rule)
    if fleet.spec.rollout.smoke is not None:
        found.append({"namespaces": [SMOKE], "clusters": [ANY]})
    return found


def team_prefix(bucket: Bucket, team: Team) -> str:
    """The address below which a team's pods may write: `s3://BUCKET/TEAM`."""
    return f"{SCHEMES[bucket.cloud]}://{bucket.name}/{team.name}"
