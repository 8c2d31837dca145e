"""The remaining resources of a cluster in the emulator's account are found, and those of other owners are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import checkpoints, leftovers
from spotladder_infra.names import bucket_key_alias
from spotladder_infra.topology.fleet import Fleet
from tests.infra import tool
from tests.ports import free_port
from tests.topology.builders import fleet_file

REGION = "us-east-1"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """A fleet whose cluster is not created: the test adds its resources."""
    return fleet_file(tmp_path, ("name: east\n", "name: planted\n"), ("home: east", "home: planted")).fleet


@pytest.fixture
def aws(emulator: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {**tool.KEYS, "AWS_ENDPOINT_URL": emulator}.items():
        monkeypatch.setenv(name, value)
    return lambda service: boto3.client(service, region_name=REGION)


def tags(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in pairs]


def specification(kind: str, *pairs: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tags(*pairs)}]


def test_planted_leftovers_are_found(aws: Any, fleet: Fleet) -> None:
    cluster = fleet.cluster("planted")
    assert leftovers.find(fleet, cluster) == []
    ours, others = ("spotladder-cluster", "planted"), ("spotladder-cluster", "other")
    owned = ("kubernetes.io/cluster/planted", "owned")
    ec2 = aws("ec2")

    def instance(*pairs: tuple[str, str]) -> str:
        made = ec2.run_instances(
            ImageId="ami-12345678", MinCount=1, MaxCount=1, TagSpecifications=specification("instance", *pairs)
        )
        return str(made["Instances"][0]["InstanceId"])

    node = instance(owned, ("karpenter.sh/nodepool", "g5-spot"), ("karpenter.sh/nodeclaim", "g5-spot-x2k4v"))
    plain, foreign = instance(ours), instance(others)
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=specification("vpc", ours))["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", TagSpecifications=specification("subnet", ours))
    subnet_id = subnet["Subnet"]["SubnetId"]
    volume = ec2.create_volume(AvailabilityZone="us-east-1a", Size=1, TagSpecifications=specification("volume", owned))[
        "VolumeId"
    ]
    interface = ec2.create_network_interface(
        SubnetId=subnet_id,
        TagSpecifications=specification("network-interface", ("cluster.k8s.amazonaws.com/name", "planted")),
    )["NetworkInterface"]["NetworkInterfaceId"]
    group = ec2.create_security_group(
        GroupName="k8s-elb", Description="x", VpcId=vpc,
        TagSpecifications=specification("security-group", ("elbv2.k8s.aws/cluster", "planted")),
    )["GroupId"]  # fmt: skip
    template = ec2.create_launch_template(
        LaunchTemplateName="karpenter.k8s.aws/1",
        LaunchTemplateData={},
        TagSpecifications=specification("launch-template", ("karpenter.k8s.aws/cluster", "planted")),
    )["LaunchTemplate"]["LaunchTemplateId"]
    balancer = aws("elbv2").create_load_balancer(
        Name="k8s-ray", Subnets=[subnet_id], Type="network", Tags=tags(("elbv2.k8s.aws/cluster", "planted"))
    )["LoadBalancers"][0]["LoadBalancerArn"]
    aws("logs").create_log_group(logGroupName="/aws/eks/planted/cluster")
    queue = aws("sqs").create_queue(QueueName="planted-interruptions")["QueueUrl"]
    aws("ecr").create_repository(repositoryName="planted", tags=tags(ours))
    iam = aws("iam")
    iam.create_role(RoleName="planted-node", AssumeRolePolicyDocument="{}", Tags=tags(ours))
    iam.create_role(RoleName="planted-of-another", AssumeRolePolicyDocument="{}", Tags=tags(others))
    iam.create_instance_profile(InstanceProfileName="planted_1234", Tags=tags(owned))
    key = aws("kms").create_key(Tags=[{"TagKey": ours[0], "TagValue": ours[1]}])["KeyMetadata"]["KeyId"]
    aws("s3").create_bucket(Bucket="scratch-of-planted")
    aws("s3").put_bucket_tagging(Bucket="scratch-of-planted", Tagging={"TagSet": tags(ours)})

    found = {(entry.kind, entry.identifier) for entry in leftovers.find(fleet, cluster)}
    assert found >= {
        ("node", node),
        ("instance", plain),
        ("VPC", vpc),
        ("subnet", subnet_id),
        ("volume", volume),
        ("network interface", interface),
        ("security group", group),
        ("launch template", template),
        ("load balancer", balancer),
        ("log group", "/aws/eks/planted/cluster"),
        ("queue", queue),
        ("image repository", "planted"),
        ("IAM role", "planted-node"),
        ("instance profile", "planted_1234"),
        ("KMS key", key),
        ("bucket", "scratch-of-planted"),
    }
    assert not {foreign, "planted-of-another"} & {identifier for _, identifier in found}
    assert [(entry.identifier, entry.detail) for entry in leftovers.nodes(cluster)] == [(node, "g5-spot-x2k4v")]

    ec2.terminate_instances(InstanceIds=[node, plain, foreign])
    aws("kms").schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    aws("elbv2").delete_load_balancer(LoadBalancerArn=balancer)
    for name in ("planted-node", "planted-of-another"):
        iam.delete_role(RoleName=name)
    iam.delete_instance_profile(InstanceProfileName="planted_1234")
    aws("s3").delete_bucket(Bucket="scratch-of-planted")
    aws("logs").delete_log_group(logGroupName="/aws/eks/planted/cluster")
    aws("sqs").delete_queue(QueueUrl=queue)
    aws("ecr").delete_repository(repositoryName="planted")
    ec2.delete_network_interface(NetworkInterfaceId=interface)
    ec2.delete_launch_template(LaunchTemplateId=template)
    ec2.delete_volume(VolumeId=volume)
    ec2.delete_security_group(GroupId=group)
    ec2.delete_subnet(SubnetId=subnet_id)
    ec2.delete_vpc(VpcId=vpc)
    assert leftovers.find(fleet, cluster) == []


def test_checkpoints_that_are_kept_are_not_leftovers(aws: Any, fleet: Fleet) -> None:
    cluster = fleet.cluster("planted")
    ours = ("spotladder-cluster", "planted")
    s3, kms = aws("s3"), aws("kms")
    key = kms.create_key(Tags=[{"TagKey": ours[0], "TagValue": ours[1]}])["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName=bucket_key_alias("acme-east"), TargetKeyId=key)
    s3.create_bucket(Bucket="acme-east")
    s3.put_bucket_tagging(Bucket="acme-east", Tagging={"TagSet": tags(ours)})
    assert leftovers.find(fleet, cluster) == []
    found = leftovers.find(fleet, cluster, keep_checkpoints=False)
    assert [(entry.kind, entry.identifier) for entry in found] == [("KMS key", key), ("bucket", "acme-east")]
    s3.delete_bucket(Bucket="acme-east")
    kms.delete_alias(AliasName=bucket_key_alias("acme-east"))
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    assert leftovers.find(fleet, cluster, keep_checkpoints=False) == []


def test_roles_with_a_prefix_are_found_and_that_of_the_replica_is_deleted(aws: Any, tmp_path: Path) -> None:
    changes = (
        ("name: east\n", "name: prefixed\n    roles: {prefix: ml-}\n"),
        ("home: east", "home: prefixed"),
        ("name: acme-east", "name: prefixed-east"),
        ("bucket: acme-east", "bucket: prefixed-east"),
    )
    fleet = fleet_file(tmp_path, *changes).fleet
    cluster, iam = fleet.cluster("prefixed"), aws("iam")
    for name in ("ml-prefixed-node", "ml-prefixed-east-replication"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}", Tags=tags(("spotladder-cluster", "prefixed")))
    assert [entry.identifier for entry in leftovers.find(fleet, cluster)] == ["ml-prefixed-node"]
    checkpoints.delete(fleet.spec.buckets[0], cluster)
    left = leftovers.find(fleet, cluster, keep_checkpoints=False)
    iam.delete_role(RoleName="ml-prefixed-node")
    assert [entry.identifier for entry in left] == ["ml-prefixed-node"]


def test_a_cloud_that_does_not_answer(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}", "AWS_MAX_ATTEMPTS": "1", **tool.KEYS}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(EnvironmentFailure, match="cluster planted: what is left cannot be listed"):
        leftovers.find(fleet, fleet.cluster("planted"))
