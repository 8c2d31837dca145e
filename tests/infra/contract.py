"""Outputs of applied stacks, as the platform layer reads them; the names in them differ from those in the fleet
file."""

from __future__ import annotations

from typing import Any


def east(**changes: Any) -> dict[str, Any]:
    """The outputs of the cluster `east` of `fleet_file`, with every field of a stack on AWS."""
    return {
        "version": 1,
        "fleet": "training",
        "cluster": "east",
        "cloud": "aws",
        "region": "us-east-1",
        "kubernetes": "1.35",
        "endpoint": "https://example.com",
        "nodeIdentity": "node-profile-of-the-stack",
        "interruptionQueue": "queue-of-the-stack",
        "egress": ["198.51.100.7"],
        "network": {"network": "vpc-1", "subnets": ["subnet-1"], "securityGroups": ["sg-1"]},
        "oidcIssuer": "https://oidc.eks.us-east-1.amazonaws.com/id/1",
        "checkpoints": "s3://acme-east",
        "identities": {
            "karpenter": "arn:k",
            "controller": "arn:c",
            "training": {"team-a": "arn:t"},
            "nodes": ["arn:n"],
        },
        **changes,
    }


def alpha() -> dict[str, Any]:
    """The outputs of the cluster `alpha`, on Google Cloud."""
    return without(
        east(
            cluster="alpha",
            cloud="gcp",
            region="us-central1",
            project="acme-ml",
            nodeIdentity="node@stack",
            identities={"karpenter": "karpenter@stack", "controller": "c"},
        ),
        "interruptionQueue",
        "checkpoints",
    )


def without(outputs: dict[str, Any], *fields: str) -> dict[str, Any]:
    """The outputs without some fields."""
    return {name: value for name, value in outputs.items() if name not in fields}
