"""What `destroy` does with the checkpoint bucket of a cluster: keep it, or delete it with every object in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder_infra.amazon import sdk
from spotladder_infra.names import bucket_key_alias
from spotladder_infra.topology.cluster import Cloud, Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet

KEY_DELETION_DAYS = 30
"""Until then, the deletion of a key can be cancelled in KMS."""

PREFIXES = ("checkpoints", "replica", "replication")
"""The first word of the names of all resources that belong to a bucket, in every stack."""


def resources(addresses: Iterable[str]) -> list[str]:
    """Those resources of a stack that belong to the checkpoint bucket: bucket, key, replica, settings."""
    return [address for address in addresses if address.partition(".")[2].partition("-")[0] in PREFIXES]


def owned(fleet: Fleet, cluster: Cluster) -> Bucket | None:
    """The bucket that the cluster's stack creates."""
    bucket = fleet.bucket_of(cluster)
    return bucket if bucket is not None and fleet.owner_of(bucket) == cluster else None


def delete(bucket: Bucket) -> None:
    """Deletes the bucket with all versions of all objects, its replica, and their keys after their waiting time.

    Repeatable: what is gone already is left out.

    Raises:
        EnvironmentFailure: The bucket is not in S3, credentials are missing, or AWS refuses.
    """
    if bucket.cloud is not Cloud.AWS:
        raise EnvironmentFailure(
            f"gs://{bucket.name}: only s3 buckets are deleted here: run gcloud storage rm -r gs://{bucket.name}"
        )
    boto3 = sdk()
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 – only for AWS

    names = {bucket.name: bucket.region}
    if bucket.replicate_to is not None:
        names[f"{bucket.name}-replica"] = bucket.replicate_to
    for name, region in names.items():
        session = boto3.session.Session(region_name=region)
        try:
            _delete_bucket(session.client("s3"), name)
            _delete_key(session.client("kms"), bucket_key_alias(name))
            _delete_role(session.client("iam"), f"{bucket.name}-replication"[:64])
        except (BotoCoreError, ClientError) as error:
            raise EnvironmentFailure(f"s3://{name}: cannot be deleted: {' '.join(str(error).split())}") from None


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
        key = client.describe_key(KeyId=alias)["KeyMetadata"]["KeyId"]
    except client.exceptions.NotFoundException:
        return
    client.schedule_key_deletion(KeyId=key, PendingWindowInDays=KEY_DELETION_DAYS)
    client.delete_alias(AliasName=alias)


def _delete_role(client: Any, name: str) -> None:
    """The role that copied objects to the replica."""
    try:
        for policy in client.list_role_policies(RoleName=name)["PolicyNames"]:
            client.delete_role_policy(RoleName=name, PolicyName=policy)
        client.delete_role(RoleName=name)
    except client.exceptions.NoSuchEntityException:
        return
