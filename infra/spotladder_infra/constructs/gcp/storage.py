"""The checkpoint bucket, its access rules, and a repository for training images."""

from __future__ import annotations

from typing import Any

from cdktn_provider_google.artifact_registry_repository import ArtifactRegistryRepository
from cdktn_provider_google.storage_bucket import StorageBucket, StorageBucketLifecycleRule
from cdktn_provider_google.storage_bucket_iam_member import StorageBucketIamMember

from spotladder_infra.constructs.gcp.identity import Pods
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Bucket, Fleet, Team

SOFT_DELETE_SECONDS = 7 * 86_400
"""For so long a deleted object can be restored. Current objects never expire."""

ABORT_UPLOAD_DAYS = 7


def checkpoints(scope: Any, bucket: Bucket, cluster: Cluster) -> Any:
    """The bucket itself."""
    encryption = {"encryption": {"default_kms_key_name": bucket.kms_key}} if bucket.kms_key else {}
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


def only_prefix(bucket: str, team: Team) -> str:
    """The IAM condition (CEL) that holds for objects below the team's prefix, and for lists of them."""
    prefix = f"{team.name}/"
    return (
        f'resource.name.startsWith("projects/_/buckets/{bucket}/objects/{prefix}") || '
        f'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("{prefix}")'
    )


def access(scope: Any, fleet: Fleet, cluster: Cluster, bucket: Bucket, *, principals: Pods, after: Any) -> None:
    """The controller reads; each team's pods write below their own prefix."""
    StorageBucketIamMember(
        scope,
        "controller-checkpoints",
        bucket=bucket.name,
        role="roles/storage.objectViewer",
        member=principals.controller,
        depends_on=after,
    )
    for team in fleet.teams_of(cluster):
        StorageBucketIamMember(
            scope,
            f"train-{team.name}",
            bucket=bucket.name,
            role="roles/storage.objectUser",
            member=principals.training(team),
            condition={"title": f"prefix-{team.name}", "expression": only_prefix(bucket.name, team)},
            depends_on=after,
        )


def images(scope: Any, cluster: Cluster) -> None:
    """A repository for training images beside the cluster."""
    ArtifactRegistryRepository(
        scope, "images", repository_id=cluster.name, location=cluster.region, format="DOCKER", project=cluster.project
    )
