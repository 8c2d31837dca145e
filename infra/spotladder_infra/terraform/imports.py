"""The ids with which Terraform imports resources that a stack would create and that already exist. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spotladder_infra.names import service_account

IDS: Mapping[str, str] = {
    "aws_budgets_budget": "ACCOUNT_ID:{name}",
    "aws_cloudwatch_log_group": "{name}",
    "aws_ecr_repository": "{name}",
    "aws_eks_access_entry": "{cluster}:PRINCIPAL_ARN",
    "aws_eks_addon": "{cluster}:{addon_name}",
    "aws_eks_cluster": "{name}",
    "aws_eks_node_group": "{cluster}:{node_group_name}",
    "aws_eks_pod_identity_association": "{cluster},ASSOCIATION_ID",
    "aws_iam_instance_profile": "{name}",
    "aws_iam_role": "{name}",
    "aws_kms_alias": "{name}",
    "aws_launch_template": "LAUNCH_TEMPLATE_ID",
    "aws_s3_bucket": "{bucket}",
    "google_artifact_registry_repository": "projects/{project}/locations/{location}/repositories/{repository_id}",
    "google_compute_address": "projects/{project}/regions/{region}/addresses/{name}",
    "google_compute_network": "projects/{project}/global/networks/{name}",
    "google_compute_router": "projects/{project}/regions/{region}/routers/{name}",
    "google_compute_router_nat": "projects/{project}/regions/{region}/routers/{cluster}/{name}",
    "google_compute_subnetwork": "projects/{project}/regions/{region}/subnetworks/{name}",
    "google_container_cluster": "projects/{project}/locations/{location}/clusters/{name}",
    "google_container_node_pool": "{project}/{location}/{cluster}/{name}",
    "google_project_iam_custom_role": "projects/{project}/roles/{role_id}",
    "google_service_account": "projects/{project}/serviceAccounts/{email}",
    "google_storage_bucket": "{name}",
}
"""By type: fields of the resource's configuration, the cluster's name in its cloud, the provider's project, and the
e-mail address of a service account. The user replaces words in capitals. Source: "Import" on the page of each resource
in the providers' documentation."""


_REFERENCE = re.compile(r"^\$\{([a-z0-9_]+\.[A-Za-z0-9_-]+)\.[a-z_]+\}$")


def import_steps(address: str, stack: Mapping[str, Any], cluster: str) -> list[tuple[str, ...]]:
    """The arguments of Terraform for the import of a resource, in the order of the steps.

    With the alias of a key, its key is imported as well: otherwise the alias would move to the key that the stack has
    created, and what the old key has encrypted could not be read.

    Args:
        address: Of a resource of the stack: `aws_iam_role.node-role`.
        stack: The content of the stack's `cdk.tf.json`.
        cluster: The name of the stack's cluster.
    """
    kind, _, name = address.partition(".")
    body = stack.get("resource", {}).get(kind, {}).get(name, {})
    steps: list[tuple[str, ...]] = [("import", address, _id(kind, body, stack, cluster))]
    if key := _REFERENCE.match(body.get("target_key_id", "")):
        steps[:0] = [("state", "rm", key[1]), ("import", key[1], "KEY_ID")]
    return steps


def _id(kind: str, body: Mapping[str, Any], stack: Mapping[str, Any], cluster: str) -> str:
    """The id of a resource; `ID` if this module does not know its type."""
    if kind not in IDS or not body:
        return "ID"
    project = stack["provider"].get("google", [{}])[0].get("project", "")
    email = service_account(body.get("account_id", ""), project)
    existing = stack.get("data", {}).get("aws_eks_cluster", {}).get("cluster", {}).get("name", cluster)
    return IDS[kind].format_map({"project": project, "email": email, **body, "cluster": existing})
