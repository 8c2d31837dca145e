"""The bucket for Terraform's state. It is created before the stacks and belongs to none of them, so that no `destroy`
deletes it. Every step is idempotent: an existing bucket of this account gets the same settings, but keeps a policy and
a key of its own.
"""

from __future__ import annotations

import json
from typing import Any

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.amazon import CREDENTIALS, answering, code_of, existing, sdk
from spotladder_infra.facts.regions import partition_of
from spotladder_infra.google import STORAGE, Google, RequestRefused
from spotladder_infra.iam import deny_http, document
from spotladder_infra.topology.cluster import Cloud
from spotladder_infra.topology.fleet import Fleet, StateLocation

VIRGINIA = "us-east-1"
"""The region in which S3 creates a bucket without a location constraint."""


def ensure(fleet: Fleet) -> str:
    """Creates the fleet's state bucket, or applies the settings to an existing one. Returns one line with the result.

    Raises:
        InvalidSpec: The fleet keeps its state in local files, or the bucket is in another region.
        EnvironmentFailure: No credentials, a bucket of another account, or an error of the cloud.
    """
    state = fleet.spec.state
    if state is None:
        raise InvalidSpec("the fleet keeps its state in local files: add state.uri", path="spec.state")
    bucket = state.uri.partition("://")[2].partition("/")[0]
    return _ensure_s3(bucket, state) if state.uri.startswith("s3://") else _ensure_gcs(bucket, fleet, state)


def _ensure_s3(bucket: str, state: StateLocation) -> str:
    with answering(f"s3://{bucket}", CREDENTIALS):
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        client = sdk().client("s3", region_name=state.region)
        try:
            created = _create(client, bucket, state.region or VIRGINIA)
            _settings(client, bucket)
        except ClientError as error:
            if code_of(error) in ("403", "AccessDenied", "BucketAlreadyExists"):
                message = f"s3://{bucket}: belongs to another account, or you may not use it ({code_of(error)})"
                raise EnvironmentFailure(f"{message}: choose another name") from None
            raise
    return f"s3://{bucket}: {'created' if created else 'already exists'}; versioned, encrypted, private"


def _create(client: Any, bucket: str, region: str) -> bool:
    """Whether the bucket was created; False when it exists and belongs to this account."""
    if existing(lambda: client.head_bucket(Bucket=bucket)) is None:
        where = {} if region == VIRGINIA else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        client.create_bucket(Bucket=bucket, **where)
        return True
    found = client.get_bucket_location(Bucket=bucket).get("LocationConstraint") or VIRGINIA
    if found != region:
        raise InvalidSpec(f"the bucket is in {found}, not in {region}: correct the region", path="spec.state.region")
    return False


def _settings(client: Any, bucket: str) -> None:
    client.put_public_access_block(
        Bucket=bucket,
        PublicAccessBlockConfiguration={
            "BlockPublicAcls": True,
            "IgnorePublicAcls": True,
            "BlockPublicPolicy": True,
            "RestrictPublicBuckets": True,
        },
    )
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    rule = {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "aws:kms"}, "BucketKeyEnabled": True}
    if not _has_key(client, bucket):
        client.put_bucket_encryption(Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]})
    if existing(lambda: client.get_bucket_policy(Bucket=bucket)) is not None:
        return  # it may let others use the bucket
    arn = f"arn:{partition_of(client.meta.region_name)}:s3:::{bucket}"
    policy = document(deny_http([arn, f"{arn}/*"], "s3:*"))
    client.put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))


def _has_key(client: Any, bucket: str) -> bool:
    """Whether the objects of the bucket are encrypted with a key that its owner has chosen."""
    found = existing(lambda: client.get_bucket_encryption(Bucket=bucket)) or {}
    rules = found.get("ServerSideEncryptionConfiguration", {}).get("Rules", [])
    return any("KMSMasterKeyID" in rule.get("ApplyServerSideEncryptionByDefault", {}) for rule in rules)


GCS_SETTINGS: dict[str, Any] = {
    "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"},
    "versioning": {"enabled": True},
    "softDeletePolicy": {"retentionDurationSeconds": str(30 * 24 * 3600)},
}
"""Access by IAM alone and never public; old versions are kept, deleted objects for 30 days."""


def _ensure_gcs(bucket: str, fleet: Fleet, state: StateLocation) -> str:
    cloud = Google()
    first = next((entry for entry in fleet.spec.clusters if entry.cloud is Cloud.GCP), None)
    region = state.region or (first.region if first is not None else None)
    try:
        found = cloud.find(STORAGE, f"b/{bucket}")
        if found is not None:
            if state.region and found.get("location", "").lower() != state.region.lower():
                message = f"the bucket is in {found.get('location')}, not in {state.region}: correct the region"
                raise InvalidSpec(message, path="spec.state.region")
            cloud.call(STORAGE, "PATCH", f"b/{bucket}", GCS_SETTINGS)
        else:
            project = (first.project if first is not None else None) or cloud.project
            if not project:
                message = "the project of the bucket is unknown: add a cluster on gcp, or set GOOGLE_CLOUD_PROJECT"
                raise InvalidSpec(message, path="spec.state.uri")
            body = {"name": bucket, **({"location": region} if region else {}), **GCS_SETTINGS}
            cloud.call(STORAGE, "POST", "b", body, project=project)
    except RequestRefused as refusal:
        if refusal.status in (403, 409):
            message = f"gs://{bucket}: belongs to another project, or you may not use it ({refusal})"
            raise EnvironmentFailure(f"{message}: choose another name, or get roles/storage.admin") from None
        raise
    made = "created" if found is None else "already exists"
    return f"gs://{bucket}: {made}; versioned, private, deletions kept 30 days"
