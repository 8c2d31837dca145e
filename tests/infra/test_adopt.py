"""Existing resources in the emulator's account that a stack would create."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import checkpoints, leftovers
from spotladder_infra.names import bucket_key_alias
from spotladder_infra.stacks.synth import synth
from spotladder_infra.terraform import adopt
from spotladder_infra.terraform.events import Action, Planned
from spotladder_infra.topology.fleet import Fleet
from tests.infra import tool
from tests.topology.builders import fleet_file

REGION = "us-east-1"
OURS = {"spotladder-fleet": "training", "spotladder-cluster": "east"}


@pytest.fixture
def aws(emulator: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in {**tool.KEYS, "AWS_ENDPOINT_URL": emulator}.items():
        monkeypatch.setenv(name, value)
    return lambda service: boto3.client(service, region_name=REGION)


def tags(**more: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in {**OURS, **more}.items()]


def everything(folder: Path) -> list[Planned]:
    stack = json.loads((folder / "cdk.tf.json").read_text())["resource"]
    return [Planned(f"{kind}.{name}", Action.CREATE) for kind, named in stack.items() for name in named]


def test_existing_resources_are_imported(aws: Any, fleet: Fleet, stacks: dict[str, Path]) -> None:
    folder, east = stacks["east"], fleet.cluster("east")
    plan = everything(folder)
    assert adopt.imports(fleet, east, folder, plan) == {}

    ec2, iam, kms, s3 = aws("ec2"), aws("iam"), aws("kms"), aws("s3")
    vpc = ec2.create_vpc(
        CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags(Name="east")}]
    )["Vpc"]["VpcId"]
    table = ec2.create_route_table(
        VpcId=vpc,
        TagSpecifications=[{"ResourceType": "route-table", "Tags": tags(Name="east-public")}],
    )["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway(
        TagSpecifications=[{"ResourceType": "internet-gateway", "Tags": tags(Name="east")}]
    )["InternetGateway"]["InternetGatewayId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    iam.create_role(RoleName="east-node", AssumeRolePolicyDocument="{}", Tags=tags())
    key = kms.create_key(Tags=[{"TagKey": tag, "TagValue": value} for tag, value in OURS.items()])
    key_id = key["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName=bucket_key_alias("acme-east"), TargetKeyId=key_id)
    s3.create_bucket(Bucket="acme-east")
    s3.put_bucket_tagging(Bucket="acme-east", Tagging={"TagSet": tags()})
    expected = {
        "aws_vpc.vpc": vpc,
        "aws_route_table.public-routes": table,
        "aws_route.public-out": f"{table}_0.0.0.0/0",
        "aws_internet_gateway.internet": gateway,
        "aws_iam_role.node-role": "east-node",
        "aws_kms_alias.checkpoints-key-alias": bucket_key_alias("acme-east"),
        "aws_kms_key.checkpoints-key": key_id,
        "aws_s3_bucket.checkpoints": "acme-east",
    }
    assert adopt.imports(fleet, east, folder, plan) == expected
    known = [entry for entry in plan if entry.address != "aws_vpc.vpc"]
    assert "aws_vpc.vpc" not in adopt.imports(fleet, east, folder, known), "it is in the state already"
    # A resource with such a name and other tags belongs to another user: the stack creates nothing beside it.
    s3.put_bucket_tagging(Bucket="acme-east", Tagging={"TagSet": [{"Key": "spotladder-cluster", "Value": "other"}]})
    iam.untag_role(RoleName="east-node", TagKeys=list(OURS))
    with pytest.raises(EnvironmentFailure) as refused:
        adopt.imports(fleet, east, folder, plan)
    assert [line.partition(" exists")[0] for line in str(refused.value).splitlines()] == [
        "cluster east: aws_iam_role.node-role: east-node",
        "cluster east: aws_s3_bucket.checkpoints: acme-east",
    ]
    assert refused.value.exit_code == 5

    for number in range(3):
        s3.put_object(Bucket="acme-east", Key=f"team-a/job/{number}", Body=b"x")
    checkpoints.delete(fleet.spec.buckets[0])
    checkpoints.delete(fleet.spec.buckets[0])
    assert "acme-east" not in [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
    assert kms.describe_key(KeyId=key_id)["KeyMetadata"]["KeyState"] == "PendingDeletion"
    iam.delete_role(RoleName="east-node")
    ec2.delete_internet_gateway(InternetGatewayId=gateway)
    ec2.delete_route_table(RouteTableId=table)
    ec2.delete_vpc(VpcId=vpc)
    assert adopt.imports(fleet, east, folder, plan) == {}


def test_resources_of_an_interrupted_creation_are_imported(aws: Any, fleet: Fleet, stacks: dict[str, Path]) -> None:
    """A key without its alias and a bucket without its tags: Terraform adds both after the creation."""
    folder, east = stacks["east"], fleet.cluster("east")
    plan, kms, s3 = everything(folder), aws("kms"), aws("s3")
    stack = json.loads((folder / "cdk.tf.json").read_text())["resource"]
    description = stack["aws_kms_key"]["checkpoints-key"]["description"]
    marks = [{"TagKey": tag, "TagValue": value} for tag, value in OURS.items()]
    key = kms.create_key(Description=description, Tags=marks)["KeyMetadata"]["KeyId"]
    s3.create_bucket(Bucket="acme-east")
    expected = {"aws_kms_key.checkpoints-key": key, "aws_s3_bucket.checkpoints": "acme-east"}
    assert adopt.imports(fleet, east, folder, plan) == expected
    s3.put_object(Bucket="acme-east", Key="of/somebody", Body=b"x")
    with pytest.raises(EnvironmentFailure, match=r"aws_s3_bucket\.checkpoints: acme-east exists and does not belong"):
        adopt.imports(fleet, east, folder, plan)
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=7)
    checkpoints.delete(fleet.spec.buckets[0])
    assert adopt.imports(fleet, east, folder, plan) == {}


def test_a_kept_bucket_and_its_replica_are_adopted_in_their_regions(
    aws: Any, stacks: dict[str, Path], tmp_path: Path
) -> None:
    assert stacks  # skips where the bindings are missing
    regions = {"kept-east": "us-west-2", "kept-east-replica": "eu-west-1"}
    replicated = "{name: kept-east, cloud: aws, region: us-west-2, replicateTo: eu-west-1}"
    changes = (
        ("{name: acme-east, cloud: aws, region: us-east-1}", replicated),
        ("bucket: acme-east", "bucket: kept-east"),
    )
    fleet = fleet_file(tmp_path, *changes).fleet
    east = fleet.cluster("east")
    folder = synth(fleet, [east], tmp_path / "out", tmp_path / "state")[0]
    plan = everything(folder)
    expected: dict[str, str] = {}
    for name, region in regions.items():
        kms, s3 = boto3.client("kms", region_name=region), boto3.client("s3", region_name=region)
        key = kms.create_key(Tags=[{"TagKey": tag, "TagValue": value} for tag, value in OURS.items()])
        kms.create_alias(AliasName=bucket_key_alias(name), TargetKeyId=key["KeyMetadata"]["KeyId"])
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags()})
        what = "replica" if name.endswith("replica") else "checkpoints"
        expected |= {
            f"aws_s3_bucket.{what}": name,
            f"aws_kms_alias.{what}-key-alias": bucket_key_alias(name),
            f"aws_kms_key.{what}-key": key["KeyMetadata"]["KeyId"],
        }
    assert adopt.imports(fleet, east, folder, plan) == expected

    assert leftovers.find(fleet, east) == []
    left = {(entry.kind, entry.identifier) for entry in leftovers.find(fleet, east, keep_checkpoints=False)}
    kinds = {"aws_s3_bucket": "bucket", "aws_kms_key": "KMS key"}
    assert left == {
        (kinds[address.split(".")[0]], identifier)
        for address, identifier in expected.items()
        if not address.startswith("aws_kms_alias")
    }
    checkpoints.delete(fleet.spec.buckets[0])
    assert leftovers.find(fleet, east, keep_checkpoints=False) == []


def test_the_resources_of_a_checkpoint_bucket_are_recognised(configuration: dict[str, Any]) -> None:
    for stack in configuration.values():
        addresses = [f"{kind}.{name}" for kind, named in stack["resource"].items() for name in named]
        kept = checkpoints.resources(addresses)
        assert all(address.split(".")[0].startswith(("aws_s3", "aws_kms", "google_storage")) for address in kept)
        assert len(kept) < len(addresses) / 3
    east = configuration["east"]["resource"]
    assert {f"aws_s3_bucket.{name}" for name in east["aws_s3_bucket"]} <= set(
        checkpoints.resources(f"{kind}.{name}" for kind, named in east.items() for name in named)
    )
