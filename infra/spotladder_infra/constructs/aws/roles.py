"""IAM roles: their trust policies and permissions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cdktn_aws import eks, iam

from spotladder_infra.iam import Policy, PolicyScope, trust
from spotladder_infra.names import role_name
from spotladder_infra.topology.cluster import Roles

PODS = "pods.eks.amazonaws.com"


@dataclass(frozen=True, slots=True)
class CreatedRole:
    """What uses the role depends on `policies` as well: Terraform creates them before it, and deletes them after it."""

    name: str
    arn: str
    policies: tuple[Any, ...]


def role(
    scope: Any, key: str, name: str, service: str, *, managed: Sequence[str] = (), place: PolicyScope | None = None
) -> CreatedRole:
    """A role for a service of AWS. `managed` are names of AWS' own policies, which need `place`."""
    made = iam.AwsRole(scope, f"{key}-role", name=name, assume_role_policy=json.dumps(trust(service)))
    attached = tuple(
        iam.AwsRolePolicyAttachment(
            scope,
            f"{key}-{policy.rpartition('/')[2]}",
            role=made.name,
            policy_arn=f"arn:{place.partition if place else 'aws'}:iam::aws:policy/{policy}",
        )
        for policy in managed
    )
    return CreatedRole(made.name, made.arn, attached)


def pod_role(
    scope: Any, key: str, name: str, cluster: str, policy: Policy, *, namespace: str, service_account: str
) -> CreatedRole:
    """A role with this policy that the pods of one service account have."""
    made = role(scope, key, name, PODS)
    iam.AwsRolePolicy(scope, f"{key}-policy", name=key, role=made.name, policy=json.dumps(policy))
    pod_identity(scope, key, made, cluster, namespace=namespace, service_account=service_account)
    return made


def pod_identity(scope: Any, key: str, made: CreatedRole, cluster: str, *, namespace: str, service_account: str) -> Any:
    """Gives the pods of one service account a role, by EKS Pod Identity."""
    return eks.AwsPodIdentityAssociation(
        scope,
        f"{key}-identity",
        cluster_name=cluster,
        namespace=namespace,
        service_account=service_account,
        role_arn=made.arn,
    )


def restrict(stack: Any, roles: Roles) -> None:
    """Gives all roles of the stack the path, prefix and permissions boundary of the fleet file."""
    for found in stack.node.find_all():
        if isinstance(found, iam.AwsRole):
            if roles.path is not None:
                found.path = roles.path
            if roles.prefix is not None:
                found.name = role_name(f"{roles.prefix}{found.name_input}")
            if roles.permissions_boundary is not None:
                found.permissions_boundary = roles.permissions_boundary
