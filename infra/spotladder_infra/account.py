"""The AWS account in which stacks are applied: the identity of this shell, and the role without which EC2 launches no
spot instance."""

from __future__ import annotations

from collections.abc import Sequence

from spotladder.core.model import CapacityType
from spotladder_infra.amazon import CREDENTIALS, Connect, answering
from spotladder_infra.topology.cluster import Cloud, Cluster

SPOT_SERVICE = "spot.amazonaws.com"
SPOT_ROLE = "AWSServiceRoleForEC2Spot"
"""The service-linked role of EC2 Spot, which a new account does not have. Karpenter may not create it: launches fail
with ServiceLinkedRoleCreationNotPermitted (karpenter.sh/docs/troubleshooting, "Missing Service Linked Role")."""

CREATE_SPOT_ROLE = f"aws iam create-service-linked-role --aws-service-name {SPOT_SERVICE}"


def caller(connect: Connect, region: str) -> str:
    """The ARN of this shell's identity. Raises EnvironmentFailure."""
    with answering("AWS does not accept the credentials of this shell", CREDENTIALS):
        return str(connect("sts", region).get_caller_identity()["Arn"])


def locked_out(cluster: Cluster, arn: str) -> str:
    """Why the identity with this ARN may not administer the cluster that it creates, with the remedy; "" if it may."""
    admins = cluster.api.admins
    if cluster.cloud is not Cloud.AWS or not admins or _principal(arn) in map(_principal, admins):
        return ""
    return (
        f"api.admins does not have {arn}, so EKS refuses it: add its role or user, or run the rollout as one of "
        f"{', '.join(admins)}"
    )


def uses_spot(clusters: Sequence[Cluster]) -> bool:
    """Whether a cluster on AWS has a pool of spot instances."""
    return any(
        pool.capacity_type is CapacityType.SPOT
        for cluster in clusters
        if cluster.cloud is Cloud.AWS
        for pool in cluster.pools
    )


def has_spot_role(connect: Connect, region: str) -> bool:
    """Whether the account has the role of EC2 Spot. Raises errors of botocore."""
    return bool(connect("iam", region).list_roles(PathPrefix=f"/aws-service-role/{SPOT_SERVICE}/")["Roles"])


def ensure_spot_role(connect: Connect, region: str) -> None:
    """Creates the role of EC2 Spot if the account does not have it. Raises EnvironmentFailure."""
    remedy = f"run {CREATE_SPOT_ROLE} with an identity that may, once in the account"
    with answering(f"the role {SPOT_ROLE} cannot be created", remedy):
        if not has_spot_role(connect, region):
            connect("iam", region).create_service_linked_role(AWSServiceName=SPOT_SERVICE)


def _principal(arn: str) -> tuple[str, str, str]:
    """Account, kind and name of an identity: the same for a role and for its sessions, whose ARNs lack its path."""
    *_, account, resource = arn.split(":")
    kind, *path = resource.split("/")
    if kind == "assumed-role":
        return account, "role", path[0]
    return account, kind, path[-1] if path else ""
