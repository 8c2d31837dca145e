"""The checkpoint bucket of a cluster in `destroy`: it is kept, or deleted with every object in it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

from spotladder.errors import EnvironmentFailure
from spotladder_infra.amazon import answering, sdk
from spotladder_infra.google import STORAGE, Google, RequestRefused
from spotladder_infra.names import bucket_key_alias, replication_role
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Bucket

KEY_DELETION_DAYS = 30
"""Waiting period in which the deletion of a key can be cancelled in KMS."""

CONCURRENT_DELETIONS = 8
"""Number of concurrent requests; in GCS each request deletes one object."""

NOT_FOUND = 404

PREFIXES = ("checkpoints", "replica", "replication")
"""Prefix of the names of all resources that belong to a bucket, in every stack."""

IDENTITIES = ("aws_s3_bucket", "aws_kms_key", "aws_kms_alias", "aws_iam_role", "google_storage_bucket")
"""Types of these resources that the next stack must import instead of creating them."""


CONTENT = ("aws_s3_bucket", "aws_kms_key", "google_storage_bucket")
"""Types of these resources without which the checkpoints are lost."""


def resources(addresses: Iterable[str]) -> list[str]:
    """The resources of a stack that belong to the checkpoint bucket: bucket, key, replica, settings."""
    return [address for address in addresses if address.partition(".")[2].partition("-")[0] in PREFIXES]


def identities(addresses: Iterable[str]) -> list[str]:
    """Of these resources, those with a name or key of their own. Terraform applies the others, which are settings,
    again."""
    return [address for address in addresses if address.partition(".")[0] in IDENTITIES]


def delete(bucket: Bucket, owner: Cluster) -> None:
    """Deletes the bucket with all versions of all objects; on AWS its replica, and their keys after a waiting time.

    Repeatable: a bucket that does not exist is skipped. `owner` is the cluster whose stack has created it.

    Raises:
        EnvironmentFailure: Credentials are missing, or the cloud refuses.
    """
    if bucket.cloud is Cloud.GCP:
        _delete_gcs(bucket.name)
    else:
        _delete_s3(bucket, replication_role(owner.roles, bucket.name))


def _delete_gcs(name: str) -> None:
    """Deletes a bucket in GCS. Disables soft deletion first: it would keep, and bill, every object for days."""
    cloud = Google()
    if cloud.find(STORAGE, f"b/{name}") is None:
        return
    cloud.call(STORAGE, "PATCH", f"b/{name}", {"softDeletePolicy": {"retentionDurationSeconds": "0"}})

    def delete_version(entry: dict[str, Any]) -> None:
        path = f"b/{name}/o/{quote(entry['name'], safe='')}"
        try:
            cloud.call(STORAGE, "DELETE", path, generation=str(entry["generation"]))
        except RequestRefused as refusal:
            if refusal.status != NOT_FOUND:
                raise

    with ThreadPoolExecutor(max_workers=CONCURRENT_DELETIONS) as pool:
        for page in cloud.pages(STORAGE, f"b/{name}/o", versions="true"):
            list(pool.map(delete_version, page.get("items", [])))
    cloud.call(STORAGE, "DELETE", f"b/{name}")


def _delete_s3(bucket: Bucket, role: str) -> None:
    names = {bucket.name: bucket.region}
    if bucket.replicate_to is not None:
        names[f"{bucket.name}-replica"] = bucket.replicate_to
    for name, region in names.items():
        with answering(f"s3://{name}: cannot be deleted"):
            session = sdk().session.Session(region_name=region)
            _delete_bucket(session.client("s3"), name)
            _delete_key(session.client("kms"), bucket_key_alias(name))
            _delete_role(session.client("iam"), role)


def _delete_bucket(client: Any, name: str) -> None:
    try:
        for page in client.get_paginator("list_object_versions").paginate(Bucket=name):
            versions = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
            objects = [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in versions]
            if not objects:
                continue
            refused = client.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True}).get("Errors")
            if refused:
                raise EnvironmentFailure(f"s3://{name}: {refused[0]['Key']}: {refused[0]['Message']}")
        client.delete_bucket(Bucket=name)
    except client.exceptions.NoSuchBucket:
        return


def _delete_key(client: Any, alias: str) -> None:
    try:
        key = client.describe_key(KeyId=alias)["KeyMetadata"]
    except client.exceptions.NotFoundException:
        return
    if key["KeyState"] != "PendingDeletion":  # by an earlier call that was interrupted
        client.schedule_key_deletion(KeyId=key["KeyId"], PendingWindowInDays=KEY_DELETION_DAYS)
    client.delete_alias(AliasName=alias)


def _delete_role(client: Any, name: str) -> None:
    """The role that copied objects to the replica."""
    try:
        for policy in client.list_role_policies(RoleName=name)["PolicyNames"]:
            client.delete_role_policy(RoleName=name, PolicyName=policy)
        client.delete_role(RoleName=name)
    except client.exceptions.NoSuchEntityException:
        return
