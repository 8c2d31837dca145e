"""Least privilege, simulated: the actions that the policies in the stack allow and deny for each identity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.iam_simulation import allowed
from spotladder_infra.topology.fleet import Fleet
from tests.infra.synthesized import synthesized
from tests.topology.builders import fleet_file

BUCKET = "arn:aws:s3:::acme-east"
JOB = f"{BUCKET}/team-a/digits"
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
    ("controller", "s3:GetObject", f"{JOB}/log/00000001.json", {}, True),
    ("controller", "s3:PutObject", f"{JOB}/log/00000001.json", {}, True),
    ("controller", "s3:DeleteObject", f"{JOB}/log/00000001.json", {}, True),
    ("controller", "s3:PutObject", f"{JOB}/outputs/0003/driver.log.gz", {}, True),
    ("controller", "s3:PutObject", f"{JOB}/outputs/0003.1/workers-0-1.log.gz", {}, True),
    ("controller", "s3:DeleteObject", f"{JOB}/outputs/0003/driver.log.gz", {}, True),
    ("controller", "s3:DeleteObject", f"{JOB}/attempts/0001/ckpt-000010/weights", {}, True),
    ("controller", "s3:GetObject", f"{JOB}/attempts/0001/ckpt-000010/weights", {}, False),
    ("controller", "s3:PutObject", f"{JOB}/attempts/0001/ckpt-000010/weights", {}, False),
    ("controller", "s3:DeleteObjectVersion", f"{JOB}/log/00000001.json", {}, False),
    ("controller", "s3:PutObject", f"{BUCKET}/team-c/digits/log/00000001.json", {}, False),
    ("controller", "s3:PutObject", "arn:aws:s3:::other/team-a/digits/log/00000001.json", {}, False),
    ("controller", "s3:ListBucket", BUCKET, {"s3:prefix": "team-a/digits/log/"}, True),
    ("controller", "s3:ListBucket", BUCKET, {"s3:prefix": "team-c/"}, False),
    ("controller", "kms:GenerateDataKey", KMS, KEY, True),
    ("controller", "kms:GenerateDataKey", KMS, {"kms:ResourceAliases": "alias/spotladder/east-cluster"}, False),
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
    roles = {
        entry["role"]
        for name, entry in configuration["west"]["resource"]["google_project_iam_member"].items()
        if name.startswith("node")
    }
    assert roles == {"roles/artifactregistry.reader", "roles/container.defaultNodeServiceAccount"}


def test_the_controller_reaches_the_buckets_of_all_clusters_from_home_only(tmp_path: Path) -> None:
    """Jobs of clusters in other regions use other buckets; the one controller reads their logs."""
    fleet = two_regions(tmp_path)
    home, other = synthesized(fleet, tmp_path, "east", "far")
    policy, key = policy_of(home, "controller"), {"kms:ResourceAliases": "alias/spotladder/acme-west"}
    log = "arn:aws:s3:::acme-west/team-a/digits/log/00000001.json"
    assert allowed(policy, "s3:PutObject", log, {})
    assert allowed(policy, "kms:GenerateDataKey", "arn:aws:kms:us-west-2:123456789012:key/1", key)
    assert not allowed(policy, "s3:PutObject", log.replace("team-a", "team-b"), {})
    assert not allowed(policy, "s3:PutObject", log.replace("acme-west", "acme-east").replace("team-a", "team-b"), {})
    assert "s3" not in json.dumps(policy_of(other, "controller"))


def test_gcs_gives_the_controller_at_home_the_prefixes_of_the_teams(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ("home: east", "home: west")).fleet
    west, alpha = (stack["resource"] for stack in synthesized(fleet, tmp_path, "west", "alpha"))
    members = west["google_storage_bucket_iam_member"]
    assert set(members) == {"controller-team-a", "controller-team-b", "train-team-a", "train-team-b"}
    for team in ("team-a", "team-b"):
        assert members[f"controller-{team}"]["member"].endswith(
            "/subject/ns/spotladder-system/sa/spotladder-controller"
        )
        assert members[f"controller-{team}"]["role"] == "roles/storage.objectUser"
        assert members[f"controller-{team}"]["condition"] == members[f"train-{team}"]["condition"]
    assert "google_storage_bucket_iam_member" not in alpha, "deleting alpha would revoke the access of west"


def test_gcs_gives_pods_of_each_project_access(tmp_path: Path) -> None:
    other = (
        "  - name: alpha\n    cloud: gcp\n    project: acme-ml",
        "  - name: alpha\n    cloud: gcp\n    project: acme-lab",
    )
    fleet = fleet_file(tmp_path, other).fleet
    (west,) = synthesized(fleet, tmp_path, "west")
    members = west["resource"]["google_storage_bucket_iam_member"]
    assert set(members) == {"train-team-a", "train-acme-lab-team-a", "train-team-b"}
    assert "/acme-lab.svc.id.goog/" in members["train-acme-lab-team-a"]["member"]
    assert "data.google_project.project-acme-lab.number" in members["train-acme-lab-team-a"]["member"]


def test_pods_get_access_after_the_cluster_has_made_their_identity_pool(configuration: dict[str, Any]) -> None:
    """Google refuses members of an identity pool that does not exist, and a project's first cluster makes it."""
    grants = [
        (cluster, f"{kind}.{name}", body)
        for cluster in ("west", "alpha")
        for kind, found in configuration[cluster]["resource"].items()
        for name, body in found.items()
        if ".svc.id.goog" in str(body.get("member", ""))
    ]
    assert len(grants) > 4
    for cluster, address, body in grants:
        assert "google_container_cluster.cluster" in body.get("depends_on", []), f"{cluster}: {address}"


def two_regions(folder: Path) -> Fleet:
    """The fleet with a second cluster on EKS, with a second bucket and without team-b."""
    second = (
        "  - name: west\n    cloud: gcp\n",
        (
            "  - name: far\n    cloud: aws\n    region: us-west-2\n    zones: [us-west-2a, us-west-2b]\n"
            "    bucket: acme-west\n    network: {cidr: 10.8.0.0/16}\n    pools:\n"
            "    - {name: far-heads, role: heads, families: [m7i]}\n  - name: west\n    cloud: gcp\n"
        ),
    )
    bucket = (
        "  - {name: acme-central",
        "  - {name: acme-west, cloud: aws, region: us-west-2}\n  - {name: acme-central",
    )
    return fleet_file(folder, bucket, second).fleet


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
