"""The checkpoint bucket, its access rules, and a repository for training images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdktn_provider_google.artifact_registry_repository import ArtifactRegistryRepository
from cdktn_provider_google.storage_bucket import StorageBucket, StorageBucketLifecycleRule
from cdktn_provider_google.storage_bucket_iam_member import StorageBucketIamMember

from spotladder_infra.constructs.gcp.identity import Pods
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet, Team

SOFT_DELETE_SECONDS = 7 * 86_400
"""Time in which a deleted object can be restored. Current objects never expire."""

ABORT_UPLOAD_DAYS = 7


def checkpoints(scope: Any, bucket: Bucket, cluster: Cluster) -> Any:
    """The bucket itself, encrypted with the key that the fleet file names, if any."""
    encryption: dict[str, Any] = {}
    if bucket.kms_key:
        access_to_key = _key_access(scope, bucket.kms_key, cluster)
        encryption = {"encryption": {"default_kms_key_name": bucket.kms_key}, "depends_on": [access_to_key]}
    protected: dict[str, Any] = {"lifecycle": {"prevent_destroy": True}} if bucket.deletion_protection else {}
    return StorageBucket(
        scope,
        "checkpoints",
        name=bucket.name,
        location=bucket.region.upper(),
        project=cluster.project,
        uniform_bucket_level_access=True,
        public_access_prevention="enforced",
        force_destroy=False,
        soft_delete_policy={"retention_duration_seconds": SOFT_DELETE_SECONDS},
        versioning={"enabled": True},
        lifecycle_rule=[
            StorageBucketLifecycleRule(
                action={"type": "AbortIncompleteMultipartUpload"}, condition={"age": ABORT_UPLOAD_DAYS}
            ),
            StorageBucketLifecycleRule(
                action={"type": "Delete"}, condition={"days_since_noncurrent_time": 30, "with_state": "ARCHIVED"}
            ),
        ],
        **encryption,
        **protected,
    )


def _key_access(scope: Any, key: str, cluster: Cluster) -> Any:
    """Lets Cloud Storage use a key. Google refuses to create a bucket with a key that its service agent may not use.

    The names begin with that of the bucket: `destroy` keeps the grant as long as the bucket.
    """
    from cdktn_provider_google.data_google_storage_project_service_account import (  # noqa: PLC0415 – slow, and only here
        DataGoogleStorageProjectServiceAccount,
    )
    from cdktn_provider_google.kms_crypto_key_iam_member import KmsCryptoKeyIamMember  # noqa: PLC0415

    agent = DataGoogleStorageProjectServiceAccount(scope, "checkpoints-agent", project=cluster.project)
    return KmsCryptoKeyIamMember(
        scope,
        "checkpoints-key-access",
        crypto_key_id=key,
        role="roles/cloudkms.cryptoKeyEncrypterDecrypter",
        member=agent.member,
    )


def only_prefix(bucket: str, team: Team) -> str:
    """The IAM condition (CEL) that holds for objects below the team's prefix, and for lists of them."""
    prefix = f"{team.name}/"
    return (
        f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{prefix}") || '
        f'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("{prefix}")'
    )


def access(scope: Any, fleet: Fleet, bucket: Bucket, principals: Mapping[str, Pods], *, after: Any) -> None:
    """Grants each team's pods, and the controller of the home cluster, access below the team's prefix.

    Clusters of one project have the same principals, so a single stack grants the access of all clusters that use the
    bucket: otherwise the deletion of one cluster would revoke the access of another.

    Args:
        principals: By project, those of all clusters that use the bucket, and of the home cluster.
    """

    def grant(key: str, team: Team, member: str) -> None:
        StorageBucketIamMember(
            scope,
            key,
            bucket=bucket.name,
            role="roles/storage.objectUser",
            member=member,
            condition={"title": f"prefix-{team.name}", "expression": only_prefix(bucket.name, team)},
            depends_on=after,
        )

    home = fleet.cluster(fleet.spec.home).project
    users = fleet.users_of(bucket)
    for team in fleet.teams_using(bucket):
        if home is not None and home in principals:
            grant(f"controller-{team.name}", team, principals[home].controller)
        for project in dict.fromkeys(entry.project or "" for entry in users if team in fleet.teams_of(entry)):
            prefix = "train" if project == users[0].project else f"train-{project}"
            grant(f"{prefix}-{team.name}", team, principals[project].training(team))


def images(scope: Any, cluster: Cluster) -> str:
    """A repository for training images beside the cluster. Returns the address below which images are pushed."""
    made = ArtifactRegistryRepository(
        scope, "images", repository_id=cluster.name, location=cluster.region, format="DOCKER", project=cluster.project
    )
    address: str = made.registry_uri
    return address
