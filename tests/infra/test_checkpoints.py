"""The checkpoint bucket of a cluster: its resources in a stack, and its deletion in the emulator's account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from spotladder_infra import checkpoints, leftovers
from spotladder_infra.names import bucket_key_alias
from tests.infra import tool
from tests.topology.builders import fleet_file

OURS = {"spotladder-fleet": "training", "spotladder-cluster": "east"}


def test_a_replicated_bucket_is_deleted_with_its_replica_and_their_keys(
    emulator: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {**tool.KEYS, "AWS_ENDPOINT_URL": emulator}.items():
        monkeypatch.setenv(name, value)
    regions = {"kept-east": "us-west-2", "kept-east-replica": "eu-west-1"}
    replicated = "{name: kept-east, cloud: aws, region: us-west-2, replicateTo: eu-west-1}"
    fleet = fleet_file(
        tmp_path,
        ("{name: acme-east, cloud: aws, region: us-east-1}", replicated),
        ("bucket: acme-east", "bucket: kept-east"),
    ).fleet
    east = fleet.cluster("east")
    expected = set()
    for name, region in regions.items():
        kms, s3 = boto3.client("kms", region_name=region), boto3.client("s3", region_name=region)
        key = kms.create_key(Tags=[{"TagKey": tag, "TagValue": value} for tag, value in OURS.items()])
        key_id = key["KeyMetadata"]["KeyId"]
        kms.create_alias(AliasName=bucket_key_alias(name), TargetKeyId=key_id)
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
        tags = [{"Key": key, "Value": value} for key, value in OURS.items()]
        s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})
        for number in range(3):
            s3.put_object(Bucket=name, Key=f"team-a/job/{number}", Body=b"x")
        expected |= {("bucket", name), ("KMS key", key_id)}

    assert leftovers.find(fleet, east) == []
    left = leftovers.find(fleet, east, keep_checkpoints=False)
    assert {(entry.kind, entry.identifier) for entry in left} == expected
    checkpoints.delete(fleet.spec.buckets[0], east)
    checkpoints.delete(fleet.spec.buckets[0], east)
    assert leftovers.find(fleet, east, keep_checkpoints=False) == []


def test_a_deletion_that_was_interrupted_before_the_alias_is_completed(
    emulator: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in {**tool.KEYS, "AWS_ENDPOINT_URL": emulator}.items():
        monkeypatch.setenv(name, value)
    bucket = fleet_file(tmp_path).fleet.spec.buckets[0].model_copy(update={"name": "interrupted-east"})
    kms, alias = boto3.client("kms", region_name=bucket.region), bucket_key_alias(bucket.name)
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    kms.create_alias(AliasName=alias, TargetKeyId=key)
    kms.schedule_key_deletion(KeyId=key, PendingWindowInDays=30)

    def schedule(**_: Any) -> None:
        raise kms.exceptions.KMSInvalidStateException({"Error": {"Code": "KMSInvalidStateException"}}, "Schedule")

    monkeypatch.setattr(kms, "schedule_key_deletion", schedule)  # as KMS does, unlike the emulator
    checkpoints._delete_key(kms, alias)
    assert alias not in [entry["AliasName"] for entry in kms.list_aliases()["Aliases"]]


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
