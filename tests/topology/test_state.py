"""The bucket for Terraform's state, created on moto's S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.state import ensure
from spotladder_infra.topology.fleet import Fleet
from tests.topology.amazon import account, no_credentials
from tests.topology.builders import fleet_file
from tests.topology.google import GoogleCloud, google_cloud

STATE = "  state: {uri: s3://acme-state/fleet, region: us-east-1}\n"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with account(monkeypatch):
        yield boto3.client("s3", region_name="us-east-1")


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


def test_created_and_repeated(s3: Any, fleet: Fleet) -> None:
    assert ensure(fleet) == "s3://acme-state: created; versioned, encrypted, private"
    assert ensure(fleet) == "s3://acme-state: already exists; versioned, encrypted, private"
    assert s3.get_bucket_versioning(Bucket="acme-state")["Status"] == "Enabled"
    assert all(s3.get_public_access_block(Bucket="acme-state")["PublicAccessBlockConfiguration"].values())
    rule = s3.get_bucket_encryption(Bucket="acme-state")["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    policy = json.loads(s3.get_bucket_policy(Bucket="acme-state")["Policy"])
    assert policy["Statement"][0]["Effect"] == "Deny"


def test_an_existing_bucket_keeps_its_policy_and_key(s3: Any, fleet: Fleet) -> None:
    """Others may use the bucket, too: without the policy they have no access, and without the key cannot read."""
    s3.create_bucket(Bucket="acme-state")
    shared = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "s3:GetObject"}
    own = {"Version": "2012-10-17", "Statement": [{**shared, "Resource": "arn:aws:s3:::acme-state/*"}]}
    s3.put_bucket_policy(Bucket="acme-state", Policy=json.dumps(own))
    encryption = {"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": "arn:aws:kms:us-east-1:123456789012:key/own"}
    rules = {"Rules": [{"ApplyServerSideEncryptionByDefault": encryption}]}
    s3.put_bucket_encryption(Bucket="acme-state", ServerSideEncryptionConfiguration=rules)
    assert ensure(fleet) == "s3://acme-state: already exists; versioned, encrypted, private"
    assert json.loads(s3.get_bucket_policy(Bucket="acme-state")["Policy"]) == own
    found = s3.get_bucket_encryption(Bucket="acme-state")["ServerSideEncryptionConfiguration"]["Rules"][0]
    assert found["ApplyServerSideEncryptionByDefault"] == encryption


def test_in_another_region(s3: Any, tmp_path: Path) -> None:
    west = (STATE, STATE.replace("us-east-1", "us-west-2"))
    ensure(fleet_file(tmp_path, west).fleet)
    assert s3.get_bucket_location(Bucket="acme-state")["LocationConstraint"] == "us-west-2"
    with pytest.raises(InvalidSpec, match="the bucket is in us-west-2, not in us-east-1"):
        ensure(fleet_file(tmp_path).fleet)


@pytest.mark.parametrize(
    ("region", "partition"), [("us-gov-west-1", "aws-us-gov"), ("cn-north-1", "aws-cn"), ("eu-west-1", "aws")]
)
def test_the_policy_names_the_partition_of_the_region(
    region: str, partition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with account(monkeypatch):
        ensure(fleet_file(tmp_path, (STATE, STATE.replace("us-east-1", region))).fleet)
        policy = json.loads(boto3.client("s3", region_name=region).get_bucket_policy(Bucket="acme-state")["Policy"])
    assert policy["Statement"][0]["Resource"] == [
        f"arn:{partition}:s3:::acme-state",
        f"arn:{partition}:s3:::acme-state/*",
    ]


def test_a_bucket_of_another_account(s3: Any, fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import ClientError

    def refuse(*_: Any, **__: Any) -> None:
        raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadBucket")

    monkeypatch.setattr("spotladder_infra.state._create", refuse)
    with pytest.raises(EnvironmentFailure, match="belongs to another account, or you may not use it"):
        ensure(fleet)


def test_without_credentials(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    no_credentials(tmp_path, monkeypatch)
    with pytest.raises(EnvironmentFailure, match="check the credentials of this shell"):
        ensure(fleet)


def test_no_state(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"keeps its state in local files: add state\.uri"):
        ensure(fleet_file(tmp_path, (STATE, "")).fleet)


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleCloud]:
    with google_cloud(monkeypatch) as cloud:
        yield cloud


def on_gcs(folder: Path, more: str = "") -> Fleet:
    return fleet_file(folder, (STATE, f"  state: {{uri: gs://acme-state/fleet{more}}}\n")).fleet


def test_a_bucket_in_gcs_is_created_and_repeated(gcs: GoogleCloud, tmp_path: Path) -> None:
    fleet = on_gcs(tmp_path)
    assert ensure(fleet) == "gs://acme-state: created; versioned, private, deletions kept 30 days"
    made = gcs.buckets["acme-state"]
    assert (made["project"], made["location"]) == ("acme-ml", "US-CENTRAL1")
    made["versioning"] = {"enabled": False}
    assert ensure(fleet) == "gs://acme-state: already exists; versioned, private, deletions kept 30 days"
    assert made["versioning"] == {"enabled": True}
    assert made["iamConfiguration"]["publicAccessPrevention"] == "enforced"
    assert made["iamConfiguration"]["uniformBucketLevelAccess"] == {"enabled": True}
    assert int(made["softDeletePolicy"]["retentionDurationSeconds"]) >= 7 * 24 * 3600


def test_a_bucket_in_gcs_in_another_region(gcs: GoogleCloud, tmp_path: Path) -> None:
    ensure(on_gcs(tmp_path, ", region: europe-west4"))
    assert gcs.buckets["acme-state"]["location"] == "EUROPE-WEST4"
    with pytest.raises(InvalidSpec, match="the bucket is in EUROPE-WEST4, not in us-east1"):
        ensure(on_gcs(tmp_path, ", region: us-east1"))


@pytest.mark.parametrize("status", [403, 409])
def test_a_bucket_of_another_project(status: int, gcs: GoogleCloud, tmp_path: Path) -> None:
    gcs.refuses["b/acme-state"] = status
    with pytest.raises(EnvironmentFailure, match="belongs to another project, or you may not use it"):
        ensure(on_gcs(tmp_path))
    assert gcs.buckets == {}


def test_gcs_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(EnvironmentFailure, match="gcloud auth application-default login"):
        ensure(on_gcs(tmp_path))
