"""Permissions of Karpenter, the controller and the training pods in the account: EKS Pod Identity, no keys."""

from __future__ import annotations

from typing import Any

from spotladder_infra import iam
from spotladder_infra.constructs.aws.nodes import Nodes
from spotladder_infra.constructs.aws.roles import pod_role
from spotladder_infra.iam import PolicyScope
from spotladder_infra.names import (
    CONTROLLER_ACCOUNT,
    CONTROLLER_NAMESPACE,
    KARPENTER_ACCOUNT,
    SYSTEM_NAMESPACE,
    training_role,
)
from spotladder_infra.outputs import Identity
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet


def identities(
    scope: Any,
    fleet: Fleet,
    cluster: Cluster,
    place: PolicyScope,
    *,
    plane: str,
    nodes: Nodes,
    queue: Any,
) -> Identity:
    """The roles of the pods of one cluster, and those of its nodes."""
    bucket = fleet.bucket_of(cluster)
    karpenter = pod_role(
        scope,
        "karpenter",
        f"{cluster.name}-karpenter",
        plane,
        iam.karpenter(place, cluster.cloud_name, nodes.role_arn, nodes.profile, queue.arn),
        namespace=SYSTEM_NAMESPACE,
        service_account=KARPENTER_ACCOUNT,
    )
    controller = pod_role(
        scope,
        "controller",
        f"{cluster.name}-controller",
        plane,
        iam.controller(place, iam.controller_buckets(fleet, cluster)),
        namespace=CONTROLLER_NAMESPACE,
        service_account=CONTROLLER_ACCOUNT,
    )
    training = {}
    for team in fleet.teams_of(cluster) if bucket else ():
        made = pod_role(
            scope,
            f"train-{team.name}",
            training_role(cluster, team),
            plane,
            iam.training(place, bucket, team.name) if bucket else {},
            namespace=team.name,
            service_account=team.service_account,
        )
        training[team.name] = made.arn
    return Identity(karpenter=karpenter.arn, controller=controller.arn, training=training, nodes=list(nodes.roles))
