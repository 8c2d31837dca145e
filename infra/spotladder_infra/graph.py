"""A diagram (Mermaid) of the resources of a stack, from the configuration that Terraform reads.

Resources that only connect or configure others (attachments, rules, policies, …) are not drawn: an arrow connects the
resources on both sides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

DRAWN: Mapping[str, tuple[str, str]] = {
    "aws_vpc": ("Network", "VPC"),
    "aws_subnet": ("Network", "subnet"),
    "aws_nat_gateway": ("Network", "NAT gateway"),
    "aws_vpc_endpoint": ("Network", "endpoint"),
    "aws_eks_cluster": ("Cluster", "EKS cluster"),
    "aws_eks_node_group": ("Cluster", "node group"),
    "aws_eks_addon": ("Cluster", "add-on"),
    "aws_iam_role": ("Identity", "IAM role"),
    "aws_iam_instance_profile": ("Identity", "instance profile"),
    "aws_kms_key": ("Storage", "KMS key"),
    "aws_s3_bucket": ("Storage", "bucket"),
    "aws_ecr_repository": ("Storage", "repository"),
    "aws_cloudwatch_log_group": ("Cluster", "log group"),
    "aws_sqs_queue": ("Interruption", "queue"),
    "aws_cloudwatch_event_rule": ("Interruption", "event rule"),
    "aws_budgets_budget": ("Cluster", "budget"),
    "google_compute_network": ("Network", "network"),
    "google_compute_subnetwork": ("Network", "subnet"),
    "google_compute_router_nat": ("Network", "Cloud NAT"),
    "google_container_cluster": ("Cluster", "GKE cluster"),
    "google_container_node_pool": ("Cluster", "node pool"),
    "google_service_account": ("Identity", "service account"),
    "google_storage_bucket": ("Storage", "bucket"),
    "google_artifact_registry_repository": ("Storage", "repository"),
}
"""The types that are drawn: their group and their label."""

GROUPS = ("Network", "Cluster", "Identity", "Storage", "Interruption")

_REFERENCE = re.compile(r"\$\{([a-z0-9_]+\.[A-Za-z0-9_-]+)")


def mermaid(stack: Mapping[str, Any], title: str) -> str:
    """The diagram of one stack, given as the content of its `cdk.tf.json`."""
    resources = {
        f"{kind}.{name}": resource for kind, named in stack["resource"].items() for name, resource in named.items()
    }
    uses = {address: [name for name in _references(body) if name in resources] for address, body in resources.items()}
    drawn = [address for address in resources if address.partition(".")[0] in DRAWN]
    identifier = {address: f"n{index}" for index, address in enumerate(drawn)}
    lines = ["---", f"title: {title}", "---", "flowchart LR"]
    for group in GROUPS:
        members = [address for address in drawn if DRAWN[address.partition(".")[0]][0] == group]
        if members:
            lines.append(f"  subgraph {group}")
            lines += [f'    {identifier[address]}["{_label(address)}"]' for address in members]
            lines.append("  end")
    arrows = {(address, target) for address in drawn for target in _targets(address, uses, set()) if target != address}
    lines += [f"  {identifier[source]} --> {identifier[target]}" for source, target in sorted(arrows)]
    return "\n".join(lines) + "\n"


def _label(address: str) -> str:
    kind, _, name = address.partition(".")
    return f"{DRAWN[kind][1]}<br>{name}"


def _targets(address: str, uses: Mapping[str, list[str]], seen: set[str]) -> Iterator[str]:
    """The drawn resources that this resource uses, directly or through resources that are not drawn."""
    for name in uses[address]:
        if name in seen:
            continue
        seen.add(name)
        if name.partition(".")[0] in DRAWN:
            yield name
        else:
            yield from _targets(name, uses, seen)


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield from _REFERENCE.findall(node)
    elif isinstance(node, Mapping):
        for key, inner in node.items():
            if key == "depends_on":
                continue
            yield from _references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _references(inner)
