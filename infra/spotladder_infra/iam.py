"""IAM policies of AWS as data. Pure, so that a test can simulate them without an account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spotladder_infra.facts.regions import principal_of
from spotladder_infra.names import bucket_key_alias
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet

Policy = dict[str, Any]

_OWNED = "kubernetes.io/cluster/{}"


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """Where a policy applies. `account` and `partition` may be Terraform expressions."""

    partition: str
    account: str
    region: str

    def arn(self, service: str, resource: str, *, account: str | None = None, region: str | None = None) -> str:
        """An ARN in this place."""
        where = self.region if region is None else region
        owner = self.account if account is None else account
        return f"arn:{self.partition}:{service}:{where}:{owner}:{resource}"


def document(*statements: dict[str, Any]) -> Policy:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def size(policy: Policy) -> int:
    """The characters of a policy as IAM counts them, without whitespace between tokens."""
    return len(json.dumps(policy, separators=(",", ":")))


def allow(sid: str, actions: Sequence[str], resources: Sequence[str], **condition: dict[str, Any]) -> dict[str, Any]:
    """A statement that allows these actions."""
    found: dict[str, Any] = {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
    return {**found, "Condition": condition} if condition else found


def trust(service: str) -> Policy:
    """The trust policy of a role for an AWS service. EKS tags the session of a pod, so it needs TagSession as well."""
    actions = ["sts:AssumeRole", "sts:TagSession"] if service.startswith("pods.eks") else ["sts:AssumeRole"]
    return document({"Effect": "Allow", "Principal": {"Service": service}, "Action": actions})


def karpenter(place: PolicyScope, cluster: str, node_role_arn: str, instance_profile: str, queue_arn: str) -> Policy:
    """Karpenter 1.15: instances of this cluster only, identified by their tags. It needs no permission to change IAM,
    because the stack creates the instance profile. Follows the policy that karpenter.sh publishes."""
    owned = _OWNED.format(cluster)
    requested: Policy = {
        "StringEquals": {f"aws:RequestTag/{owned}": "owned", "aws:RequestTag/eks:eks-cluster-name": cluster},
        "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
    }
    existing = {
        "StringEquals": {f"aws:ResourceTag/{owned}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }

    def of(*kinds: str) -> list[str]:
        return [place.arn("ec2", f"{kind}/*", account="*") for kind in kinds]

    public = [place.arn("ec2", f"{kind}/*", account="") for kind in ("image", "snapshot")]
    created = of("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
    used = of("security-group", "subnet", "capacity-reservation", "placement-group")
    tagging: Policy = {
        **requested,
        "StringEquals": {
            **requested["StringEquals"],
            "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        },
    }
    retagging: Policy = {
        **existing,
        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": cluster},
        "ForAllValues:StringEquals": {"aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]},
    }
    launch = ["ec2:RunInstances", "ec2:CreateFleet"]
    return document(
        allow("LaunchWithWhatExists", launch, [*public, *used]),
        allow("LaunchFromOwnTemplates", launch, of("launch-template"), **existing),
        allow("LaunchWithTags", [*launch, "ec2:CreateLaunchTemplate"], created, **requested),
        allow("TagWhatIsLaunched", ["ec2:CreateTags"], created, **tagging),
        allow("TagOwnInstances", ["ec2:CreateTags"], of("instance"), **retagging),
        allow(
            "EndOwnInstances",
            ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            of("instance", "launch-template"),
            **existing,
        ),
        allow(
            "ReadInRegion",
            [
                "ec2:DescribeCapacityReservations",
                "ec2:DescribeImages",
                "ec2:DescribeInstanceStatus",
                "ec2:DescribeInstanceTypeOfferings",
                "ec2:DescribeInstanceTypes",
                "ec2:DescribeInstances",
                "ec2:DescribeLaunchTemplates",
                "ec2:DescribePlacementGroups",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSpotPriceHistory",
                "ec2:DescribeSubnets",
            ],
            ["*"],
            StringEquals={"aws:RequestedRegion": place.region},
        ),
        allow("ReadImages", ["ssm:GetParameter"], [place.arn("ssm", "parameter/aws/service/*", account="")]),
        allow("ReadPrices", ["pricing:GetProducts"], ["*"]),
        allow(
            "PassNodeRole",
            ["iam:PassRole"],
            [node_role_arn],
            StringEquals={"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]},
        ),
        allow(
            "ReadInstanceProfile",
            ["iam:GetInstanceProfile"],
            [place.arn("iam", f"instance-profile/{instance_profile}", region="")],
        ),
        allow("ListInstanceProfiles", ["iam:ListInstanceProfiles"], ["*"]),
        allow("FindApiServer", ["eks:DescribeCluster"], [place.arn("eks", f"cluster/{cluster}")]),
        allow(
            "ReadInterruptions",
            ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
            [queue_arn],
        ),
    )


def training(place: PolicyScope, bucket: Bucket, prefix: str) -> Policy:
    """The training pods of one team: access to its own prefix of the checkpoint bucket, and to nothing else."""
    arn = f"arn:{place.partition}:s3:::{bucket.name}"
    return document(
        allow("ListPrefix", ["s3:ListBucket"], [arn], StringLike={"s3:prefix": [f"{prefix}/*", f"{prefix}/"]}),
        allow(
            "Checkpoints",
            [
                "s3:AbortMultipartUpload",
                "s3:DeleteObject",
                "s3:GetObject",
                "s3:ListMultipartUploadParts",
                "s3:PutObject",
            ],
            [f"{arn}/{prefix}/*"],
        ),
        _bucket_key(place, bucket),
    )


@dataclass(frozen=True, slots=True)
class Prefixes:
    """A checkpoint bucket and the prefixes of the teams that use it, without their final slash."""

    bucket: Bucket
    teams: tuple[str, ...]


def controller_buckets(fleet: Fleet, cluster: Cluster) -> list[Prefixes]:
    """The buckets of all jobs in the home cluster, where the controller runs; none elsewhere."""
    if cluster.name != fleet.spec.home:
        return []
    return [
        Prefixes(bucket, tuple(team.name for team in fleet.teams_using(bucket)))
        for bucket in fleet.spec.buckets
        if bucket.cloud is cluster.cloud
    ]


def controller(place: PolicyScope, buckets: Sequence[Prefixes]) -> Policy:
    """The controller: spot prices, the API servers of the fleet's clusters, and commit logs.

    At the end of a job the controller appends the outcome to the commit log and deletes old checkpoints; it writes the
    output of attempts beside the log. It reads no checkpoint.
    """
    found = [
        allow("FindApiServers", ["eks:DescribeCluster"], [place.arn("eks", "cluster/*", region="*")]),
        allow("ReadPrices", ["ec2:DescribeSpotPriceHistory"], ["*"]),
    ]
    for number, entry in enumerate(entry for entry in buckets if entry.teams):
        arn = f"arn:{place.partition}:s3:::{entry.bucket.name}"

        def below(*folders: str, arn: str = arn, teams: Sequence[str] = entry.teams) -> list[str]:
            return [f"{arn}/{team}/*/{folder}/*" for team in teams for folder in folders]

        found += [
            allow(
                f"ListCheckpoints{number}",
                ["s3:ListBucket"],
                [arn],
                StringLike={"s3:prefix": [f"{team}/*" for team in entry.teams]},
            ),
            allow(
                f"CommitLogs{number}",
                ["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
                below("log", "outputs"),
            ),
            allow(f"OldCheckpoints{number}", ["s3:DeleteObject"], below("attempts")),
            _bucket_key(place, entry.bucket, str(number)),
        ]
    return document(*found)


def _bucket_key(place: PolicyScope, bucket: Bucket, suffix: str = "") -> dict[str, Any]:
    """The user's key of the bucket, or its own by the alias: the key may belong to the stack of another cluster."""
    sid, actions = f"BucketKey{suffix}", ["kms:Decrypt", "kms:GenerateDataKey"]
    if bucket.kms_key is not None:
        return allow(sid, actions, [bucket.kms_key])
    condition = {"ForAnyValue:StringEquals": {"kms:ResourceAliases": bucket_key_alias(bucket.name)}}
    return allow(sid, actions, [place.arn("kms", "key/*", region=bucket.region)], **condition)


def deny_http(resources: Sequence[str], action: str) -> dict[str, Any]:
    """A statement that refuses requests without TLS."""
    return {
        "Sid": "DenyHTTP",
        "Effect": "Deny",
        "Principal": "*",
        "Action": action,
        "Resource": list(resources),
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def queue(queue_arn: str, account: str) -> Policy:
    """The interruption queue: only EventBridge of this account writes, and only with TLS."""
    return document(
        {
            "Sid": "EventBridge",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
            "Condition": {"StringEquals": {"aws:SourceAccount": account}},
        },
        deny_http([queue_arn], "sqs:*"),
    )


def cluster_key(place: PolicyScope, log_group: str) -> Policy:
    """The cluster's KMS key: the account administers it, CloudWatch encrypts the control plane's logs with it."""
    return document(
        {
            "Sid": "Account",
            "Effect": "Allow",
            "Principal": {"AWS": place.arn("iam", "root", region="")},
            "Action": "kms:*",
            "Resource": "*",
        },
        {
            "Sid": "Logs",
            "Effect": "Allow",
            "Principal": {"Service": principal_of(f"logs.{place.region}", place.region)},
            "Action": ["kms:Encrypt*", "kms:Decrypt*", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:Describe*"],
            "Resource": "*",
            "Condition": {
                "ArnEquals": {"kms:EncryptionContext:aws:logs:arn": place.arn("logs", f"log-group:{log_group}")}
            },
        },
    )
