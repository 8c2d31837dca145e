"""The least permissions for the identity that applies a stack: a policy of AWS, or roles of Google Cloud."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder_infra import iam
from spotladder_infra.account import uses_spot
from spotladder_infra.facts.apply_permissions import AWS, GCP
from spotladder_infra.facts.regions import partition_of
from spotladder_infra.names import interruption_queue
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Fleet

_REGIONAL = ("ec2", "kms")
"""Services whose statement names the region: the ids of their resources are not known before they exist."""

_READ_EC2 = "ec2:Describe"
"""What EC2 describes is allowed as a whole: listed, the policy of a stack with every option has more than the 6,144
characters that IAM allows."""

_ENSURE_SPOT_ROLE = {"iam:CreateServiceLinkedRole", "iam:ListRoles"}

_UNNAMED = {
    "eks:DescribeAddonVersions",
    "iam:ListRoles",
    "kms:ListAliases",
    "logs:DescribeLogGroups",
    "budgets:ListTagsForResource",
}
"""Actions on resources of other names than those of the cluster."""


def of_stack(fleet: Fleet, cluster: Cluster, stack: Mapping[str, Any]) -> dict[str, Any]:
    """The permissions that Terraform needs to apply and to destroy a stack, given as its `cdk.tf.json`, and that
    `bootstrap` needs for the role of EC2 Spot."""
    known = AWS if cluster.cloud is Cloud.AWS else GCP
    read = {name for kind in stack.get("data", {}) if (name := f"data.{kind}") in known}
    needed = {entry for kind in (*stack["resource"], *read) for entry in known[kind].split()}
    if cluster.cloud is Cloud.GCP:
        found: dict[str, Any] = {"project": cluster.project, "roles": sorted(needed | {"roles/browser"})}
        existing = cluster.network.existing
        host = existing.network.split("/")[1] if existing and existing.network else cluster.project
        return found if host == cluster.project else {**found, "hostProject": {host: ["roles/compute.networkUser"]}}
    if uses_spot([cluster]):
        needed |= _ENSURE_SPOT_ROLE
    place = iam.PolicyScope(partition_of(cluster.region or ""), cluster.account or "*", cluster.region or "")
    by_service: dict[str, set[str]] = {}
    for action in sorted({f"{_READ_EC2}*" if entry.startswith(_READ_EC2) else entry for entry in needed}):
        by_service.setdefault("any" if action in _UNNAMED else action.partition(":")[0], set()).add(action)
    linked = by_service["iam"] & {"iam:CreateServiceLinkedRole"}
    by_service["iam"] -= linked
    roles = [place.arn("iam", "role/aws-service-role/*", region="")]
    statements = [iam.allow("Linked", sorted(linked), roles)] if linked else []
    for service, actions in sorted(by_service.items()):
        condition = (
            {"StringEquals": {"aws:RequestedRegion": sorted(fleet.regions_of(cluster))}} if service in _REGIONAL else {}
        )
        statements.append(
            iam.allow(service.capitalize(), sorted(actions), _resources(fleet, cluster, place, service), **condition)
        )
    return iam.document(*statements)


def _resources(fleet: Fleet, cluster: Cluster, place: iam.PolicyScope, service: str) -> list[str]:
    name, bucket = cluster.name, fleet.bucket_of(cluster)
    roles = f"role{cluster.roles.path or '/'}{cluster.roles.prefix or ''}"
    own = [f"{roles}{name}-*", *([f"{roles}{bucket.name}-*"] if bucket else [])]
    if service == "iam":
        return [place.arn("iam", entry, region="") for entry in (*own, f"instance-profile/{name}-*")]
    if service == "s3":
        return [f"arn:{place.partition}:s3:::{bucket.name}{end}" for end in ("", "-replica")] if bucket else ["*"]
    if service == "eks":
        kinds = ("access-entry", "addon", "nodegroup", "podidentityassociation")
        name = cluster.cloud_name
        return [place.arn("eks", f"{kind}/{name}{'' if kind == 'cluster' else '/*'}") for kind in ("cluster", *kinds)]
    return {
        "ecr": [place.arn("ecr", f"repository/{name}")],
        "events": [place.arn("events", f"rule/{name}-*")],
        "logs": [place.arn("logs", f"log-group:/aws/eks/{name}/*")],
        "route53": [f"arn:{place.partition}:route53:::hostedzone/*"],
        "sqs": [place.arn("sqs", interruption_queue(cluster))],
        "budgets": [place.arn("budgets", f"budget/{name}*", region="")],
    }.get(service, ["*"])
