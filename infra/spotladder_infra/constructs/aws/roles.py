"""IAM roles: their trust policies and permissions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cdktn_aws import eks, iam

from spotladder_infra.iam import Policy, PolicyScope, trust

PODS = "pods.eks.amazonaws.com"


def role(
    scope: Any, key: str, name: str, service: str, *, managed: Sequence[str] = (), place: PolicyScope | None = None
) -> Any:
    """A role for a service of AWS. `managed` are names of AWS' own policies, which need `place`."""
    made = iam.AwsRole(scope, f"{key}-role", name=name, assume_role_policy=json.dumps(trust(service)))
    for policy in managed:
        arn = f"arn:{place.partition if place else 'aws'}:iam::aws:policy/{policy}"
        iam.AwsRolePolicyAttachment(scope, f"{key}-{policy}", role=made.name, policy_arn=arn)
    return made


def pod_role(
    scope: Any, key: str, name: str, cluster: str, policy: Policy, *, namespace: str, service_account: str
) -> Any:
    """A role that the pods of one service account have, by EKS Pod Identity."""
    made = role(scope, key, name, PODS)
    iam.AwsRolePolicy(scope, f"{key}-policy", name=key, role=made.name, policy=json.dumps(policy))
    eks.AwsPodIdentityAssociation(
        scope,
        f"{key}-identity",
        cluster_name=cluster,
        namespace=namespace,
        service_account=service_account,
        role_arn=made.arn,
    )
    return made
