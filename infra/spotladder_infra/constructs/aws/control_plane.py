"""The EKS cluster: private API server, encrypted secrets, logs, and administrators; or an existing cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cdktn import TerraformVariable
from cdktn_aws import cloudwatch_logs, ec2, eks, kms, vpc

from spotladder_infra.constructs.aws.network import CreatedNetwork, existing_network
from spotladder_infra.constructs.aws.roles import role
from spotladder_infra.iam import PolicyScope, cluster_key
from spotladder_infra.names import HOME_EGRESS, discovery_tag
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.defaults import reached_over_the_internet, service_range_of
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.network import ExistingNetwork

LOGS = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
LOG_RETENTION_DAYS = 365
ONLY_AT_CREATION = (
    "bootstrap_self_managed_addons",
    "access_config[0].bootstrap_cluster_creator_admin_permissions",
    "vpc_config[0].subnet_ids",
)
"""EKS does not return the first two later, so that Terraform would replace a cluster that it imports, and refuses
subnets in more zones. Nodes use those as well."""

ADMIN_POLICY = "AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """`name` depends on the cluster, so that resources that use the name are created after the cluster."""

    name: str
    endpoint: str
    issuer: str
    security_groups: tuple[str, ...]


def control_plane(
    scope: Any, fleet: Fleet, cluster: Cluster, place: PolicyScope, network: CreatedNetwork
) -> ControlPlane:
    """The cluster itself."""
    name = cluster.name
    log_group = f"/aws/eks/{name}/cluster"
    key = cluster.kms_key or _own_key(scope, name, json.dumps(cluster_key(place, log_group)))
    logs = cloudwatch_logs.AwsGroup(
        scope, "cluster-logs", name=log_group, retention_in_days=LOG_RETENTION_DAYS, kms_key_id=key
    )
    owner = role(
        scope, "cluster", f"{name}-cluster", "eks.amazonaws.com", managed=("AmazonEKSClusterPolicy",), place=place
    )
    protected = {"deletion_protection": True} if cluster.deletion_protection else {}
    access: dict[str, Any] = {"endpoint_private_access": True, "endpoint_public_access": bool(cluster.api.allowed)}
    if network.security_groups:
        access["security_group_ids"] = list(network.security_groups)
    if cluster.api.allowed:
        access["public_access_cidrs"] = list(cluster.api.allowed)
    made = eks.AwsCluster(
        scope,
        "cluster",
        name=name,
        version=cluster.kubernetes,
        role_arn=owner.arn,
        bootstrap_self_managed_addons=False,
        vpc_config={"subnet_ids": list(network.subnets), **access},
        access_config={
            "authentication_mode": "API",
            "bootstrap_cluster_creator_admin_permissions": not cluster.api.admins,
        },
        encryption_config={"resources": ["secrets"], "provider": {"key_arn": key}},
        enabled_cluster_log_types=LOGS,
        kubernetes_network_config={"service_ipv4_cidr": service_range_of(cluster), "ip_family": "ipv4"},
        upgrade_policy={"support_type": "STANDARD"},
        lifecycle={"ignore_changes": list(ONLY_AT_CREATION)},
        depends_on=[logs, *owner.policies],
        **protected,
    )
    if reached_over_the_internet(fleet, cluster):
        TerraformVariable(
            scope,
            HOME_EGRESS,
            type="list(string)",
            default=[],
            description="Addresses from which the controller in the home cluster reaches the API server",
        )
        allowed = f"${{distinct(concat({json.dumps(cluster.api.allowed)}, var.{HOME_EGRESS}))}}"
        made.add_override("vpc_config.public_access_cidrs", allowed)
    group = f"${{{made.fqn}.vpc_config[0].cluster_security_group_id}}"
    for tag, value in discovery_tag(cluster).items():
        ec2.AwsTag(scope, "cluster-group-discovery", resource_id=group, key=tag, value=value)
    nodes = _node_group(scope, cluster, network)
    _access(scope, fleet, cluster, made.name, place)
    issuer = f"${{{made.fqn}.identity[0].oidc[0].issuer}}"
    return ControlPlane(made.name, made.endpoint, issuer, (group, nodes, *network.security_groups))


def existing_cluster(
    scope: Any, fleet: Fleet, cluster: Cluster, place: PolicyScope
) -> tuple[CreatedNetwork, ControlPlane]:
    """A cluster that the stack only reads, with the subnets of the file. Its API server and its network stay as they
    are; teams get access entries.
    """
    found = eks.DataAwsCluster(scope, "cluster", name=cluster.cloud_name)
    settings = f"{found.fqn}.vpc_config[0]"
    network = existing_network(scope, cluster.network.existing or ExistingNetwork(), f"${{{settings}.vpc_id}}")
    _access(scope, fleet, cluster, found.name, place)
    issuer = f"${{{found.fqn}.identity[0].oidc[0].issuer}}"
    group = f"${{{settings}.cluster_security_group_id}}"
    return network, ControlPlane(found.name, found.endpoint, issuer, (group, *network.security_groups))


def _own_key(scope: Any, name: str, policy: str) -> str:
    """The ARN of a key for the secrets and logs of the cluster."""
    made = kms.AwsKey(
        scope,
        "cluster-key",
        description=f"Secrets and logs of EKS cluster {name}",
        enable_key_rotation=True,
        deletion_window_in_days=7,
        policy=policy,
    )
    kms.AwsAlias(scope, "cluster-key-alias", name=f"alias/spotladder/{name}-cluster", target_key_id=made.key_id)
    return str(made.arn)


def _node_group(scope: Any, cluster: Cluster, network: CreatedNetwork) -> str:
    """A second security group for Karpenter's nodes. Karpenter finds it by the discovery tag, as it finds the cluster's
    security group. EFA needs rules that name the group itself. They are not added to the security group that EKS
    creates, because EKS owns the rules of that group.
    """
    group = vpc.AwsSecurityGroup(
        scope,
        "nodes",
        name=f"{cluster.name}-nodes",
        description="EFA between the nodes",
        vpc_id=network.vpc_id,
        tags={"Name": f"{cluster.name}-nodes", **discovery_tag(cluster)},
    )
    for key, rule in (
        ("nodes-from-nodes", vpc.AwsSecurityGroupIngressRule),
        ("nodes-to-nodes", vpc.AwsSecurityGroupEgressRule),
    ):
        rule(
            scope,
            key,
            security_group_id=group.id,
            referenced_security_group_id=group.id,
            ip_protocol="-1",
            description="EFA between the nodes",
            tags={"Name": f"{cluster.name}-{key}"},
        )
    return str(group.id)


def _access(scope: Any, fleet: Fleet, cluster: Cluster, name: str, place: PolicyScope) -> None:
    """The administrators, and the members of teams, whose Kubernetes groups may write the team's jobs.

    EKS allows one access entry for each role or user.
    """
    admins = dict.fromkeys(cluster.api.admins)
    groups: dict[str, dict[str, None]] = {arn: {} for arn in admins}
    for team in fleet.teams_with_namespace(cluster):
        for arn in team.iam_principals:
            groups.setdefault(arn, {}).update(dict.fromkeys(team.kubernetes_groups))
    for index, (arn, named) in enumerate(groups.items()):
        admin = arn in admins
        key = f"admin-{index}" if admin else f"member-{index - len(admins)}"
        granted = {"kubernetes_groups": list(named)} if named else {}
        entry = eks.AwsAccessEntry(scope, key, cluster_name=name, principal_arn=arn, **granted)
        if admin:
            eks.AwsAccessPolicyAssociation(
                scope,
                f"admin-policy-{index}",
                cluster_name=name,
                principal_arn=arn,
                policy_arn=f"arn:{place.partition}:eks::aws:cluster-access-policy/{ADMIN_POLICY}",
                access_scope={"type": "cluster"},
                depends_on=[entry],
            )
