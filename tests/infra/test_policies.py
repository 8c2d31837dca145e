"""Least privilege, simulated: what each identity may and may not do, by the policies that are in the stack."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from typing import Any

import pytest

BUCKET = "arn:aws:s3:::acme-east"
EC2 = "arn:aws:ec2:us-east-1:123456789012"
OWN = {"aws:ResourceTag/kubernetes.io/cluster/east": "owned", "aws:ResourceTag/karpenter.sh/nodepool": "g5-spot"}
NEW = {
    "aws:RequestTag/kubernetes.io/cluster/east": "owned",
    "aws:RequestTag/eks:eks-cluster-name": "east",
    "aws:RequestTag/karpenter.sh/nodepool": "g5-spot",
}
KEY = {"kms:ResourceAliases": "alias/spotladder/acme-east"}
REGION = {"aws:RequestedRegion": "us-east-1"}
NODE_ROLE = "arn:aws:iam::123456789012:role/east-node"
PASSED = {"iam:PassedToService": "ec2.amazonaws.com"}
KMS = "arn:aws:kms:us-east-1:123456789012:key/1"

Case = tuple[str, str, str, dict[str, str], bool]
CASES: list[Case] = [
    ("train-team-a", "s3:PutObject", f"{BUCKET}/team-a/digits/1", {}, True),
    ("train-team-a", "s3:GetObject", f"{BUCKET}/team-a/digits/1", {}, True),
    ("train-team-a", "s3:GetObject", f"{BUCKET}/team-b/digits/1", {}, False),
    ("train-team-a", "s3:PutObject", f"{BUCKET}/team-ab/digits/1", {}, False),
    ("train-team-a", "s3:GetObject", "arn:aws:s3:::other/team-a/1", {}, False),
    ("train-team-a", "s3:ListBucket", BUCKET, {"s3:prefix": "team-a/digits"}, True),
    ("train-team-a", "s3:ListBucket", BUCKET, {"s3:prefix": "team-b/"}, False),
    ("train-team-a", "s3:ListBucket", BUCKET, {}, False),
    ("train-team-a", "s3:DeleteObjectVersion", f"{BUCKET}/team-a/digits/1", {}, False),
    ("train-team-a", "s3:PutBucketPolicy", BUCKET, {}, False),
    ("train-team-a", "kms:GenerateDataKey", KMS, KEY, True),
    ("train-team-a", "kms:Decrypt", KMS, {"kms:ResourceAliases": "alias/spotladder/east-cluster"}, False),
    ("controller", "s3:GetObject", f"{BUCKET}/team-a/digits/1", {}, True),
    ("controller", "s3:PutObject", f"{BUCKET}/team-a/digits/1", {}, False),
    ("controller", "s3:DeleteObject", f"{BUCKET}/team-a/digits/1", {}, False),
    ("controller", "secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:1:secret:x", {}, False),
    ("controller", "eks:DescribeCluster", "arn:aws:eks:us-west-2:123456789012:cluster/west", {}, True),
    ("karpenter", "ec2:TerminateInstances", f"{EC2}:instance/i-1", OWN, True),
    ("karpenter", "ec2:TerminateInstances", f"{EC2}:instance/i-1", {}, False),
    (
        "karpenter",
        "ec2:TerminateInstances",
        f"{EC2}:instance/i-1",
        {**OWN, "aws:ResourceTag/kubernetes.io/cluster/east": "no"},
        False,
    ),
    ("karpenter", "ec2:RunInstances", f"{EC2}:instance/i-1", NEW, True),
    ("karpenter", "ec2:RunInstances", f"{EC2}:instance/i-1", {}, False),
    ("karpenter", "ec2:CreateFleet", f"{EC2}:subnet/subnet-1", {}, True),
    ("karpenter", "ec2:DescribeInstanceStatus", "*", REGION, True),
    ("karpenter", "ec2:DescribeInstanceStatus", "*", {"aws:RequestedRegion": "eu-west-1"}, False),
    ("karpenter", "iam:PassRole", NODE_ROLE, PASSED, True),
    ("karpenter", "iam:PassRole", "arn:aws:iam::123456789012:role/admin", PASSED, False),
    ("karpenter", "iam:CreateRole", "*", {}, False),
    ("karpenter", "iam:CreateInstanceProfile", "*", {}, False),
    ("karpenter", "sqs:ReceiveMessage", "arn:aws:sqs:us-east-1:123456789012:east-interruptions", {}, True),
    ("karpenter", "sqs:ReceiveMessage", "arn:aws:sqs:us-east-1:123456789012:other", {}, False),
    ("karpenter", "s3:GetObject", f"{BUCKET}/team-a/digits/1", {}, False),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1]}-{case[4]}")
def test_simulated(case: Case, configuration: dict[str, Any]) -> None:
    identity, action, resource, context, expected = case
    assert allowed(policy_of(configuration["east"], identity), action, resource, context) is expected


def test_nodes_have_no_policy_of_ours_and_none_for_buckets(configuration: dict[str, Any]) -> None:
    """All nodes have the three policies of AWS that a node needs; none of them reads a bucket."""
    resources = configuration["east"]["resource"]
    attached: dict[str, set[str]] = {}
    for attachment in resources["aws_iam_role_policy_attachment"].values():
        attached.setdefault(attachment["role"], set()).add(attachment["policy_arn"].rpartition("/")[2])
    needed = {"AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly"}
    for role in ("node-role", "system-role"):
        assert attached[f"${{aws_iam_role.{role}.name}}"] == needed
        assert not [
            p for p in resources["aws_iam_role_policy"].values() if p["role"] == f"${{aws_iam_role.{role}.name}}"
        ]


def test_no_policy_allows_everything(configuration: dict[str, Any]) -> None:
    for name, policy in configuration["east"]["resource"]["aws_iam_role_policy"].items():
        for statement in json.loads(policy["policy"])["Statement"]:
            assert not [action for action in statement["Action"] if "*" in action], name
            if statement["Resource"] == ["*"]:
                assert all(
                    action.split(":")[1].startswith(("Describe", "List", "GetProducts"))
                    for action in statement["Action"]
                )


def test_gcp_prefixes(configuration: dict[str, Any]) -> None:
    members = configuration["west"]["resource"]["google_storage_bucket_iam_member"]
    for team in ("team-a", "team-b"):
        expression = members[f"train-{team}"]["condition"]["expression"]
        assert f'"projects/_/buckets/acme-central/objects/{team}/"' in expression
        assert members[f"train-{team}"]["member"].endswith(f"/subject/ns/{team}/sa/training")
    assert members["controller-checkpoints"]["role"] == "roles/storage.objectViewer"
    roles = {
        entry["role"]
        for name, entry in configuration["west"]["resource"]["google_project_iam_member"].items()
        if name.startswith("node")
    }
    assert roles == {"roles/artifactregistry.reader", "roles/container.defaultNodeServiceAccount"}


def policy_of(stack: dict[str, Any], identity: str) -> dict[str, Any]:
    """The policy of a role with the account's own values in place of Terraform's expressions."""
    text = stack["resource"]["aws_iam_role_policy"][f"{identity}-policy"]["policy"]
    for expression, value in {
        "${data.aws_partition.partition.partition}": "aws",
        "${data.aws_caller_identity.account.account_id}": "123456789012",
        "${aws_iam_role.node-role.arn}": NODE_ROLE,
        "${aws_iam_instance_profile.node-profile.name}": "east-node",
        "${aws_sqs_queue.interruptions.arn}": "arn:aws:sqs:us-east-1:123456789012:east-interruptions",
    }.items():
        text = text.replace(expression, value)
    assert "${" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def allowed(policy: dict[str, Any], action: str, resource: str, context: dict[str, str]) -> bool:
    """Whether a statement allows the request. The policies of roles have no Deny."""
    return any(
        statement["Effect"] == "Allow"
        and any(fnmatchcase(action, pattern) for pattern in statement["Action"])
        and any(fnmatchcase(resource, pattern) for pattern in statement["Resource"])
        and all(_holds(operator, wanted, context) for operator, wanted in statement.get("Condition", {}).items())
        for statement in policy["Statement"]
    )


def _holds(operator: str, wanted: dict[str, Any], context: dict[str, str]) -> bool:
    plain = operator.removeprefix("ForAnyValue:").removeprefix("ForAllValues:")
    for key, values in wanted.items():
        accepted = values if isinstance(values, list) else [values]
        given = context.get(key)
        if given is None:
            if plain.endswith("IfExists") or operator.startswith("ForAllValues:"):
                continue
            return False
        matches = fnmatchcase if plain.startswith("StringLike") else str.__eq__
        if not any(matches(given, value) for value in accepted):
            return False
    return True
