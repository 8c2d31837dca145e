"""The checkpoint bucket: versioned, encrypted, private, and without a rule that deletes a committed checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cdktn_aws import iam, kms, s3

from spotladder_infra.constructs.aws.roles import role
from spotladder_infra.iam import allow, deny_http, document
from spotladder_infra.names import bucket_key_alias, replication_name
from spotladder_infra.topology.fleet import Bucket

ABORT_UPLOAD_DAYS = 7
NONCURRENT_DAYS = 30
"""Days for which object versions are kept after spotladder has deleted or replaced them. Current objects never
expire."""

KEY_DELETION_DAYS = 30


def checkpoints(scope: Any, bucket: Bucket, provider: Any | None, replica_provider: Any | None) -> None:
    """The bucket and, if the fleet file has `replicateTo`, its replica in another region.

    Args:
        provider: The provider of the bucket's region; None for that of the cluster.
        replica_provider: The provider of the replica's region.
    """
    source = _bucket(
        scope, "checkpoints", bucket.name, provider, protect=bucket.deletion_protection, kms_key=bucket.kms_key
    )
    if bucket.replicate_to is not None:
        name = f"{bucket.name}-replica"
        target = _bucket(scope, "replica", name, replica_provider, protect=bucket.deletion_protection)
        _replication(scope, bucket, provider, source=source, target=target)


@dataclass(frozen=True, slots=True)
class _EncryptedBucket:
    bucket: Any
    key: str
    versioning: Any


def _bucket(
    scope: Any, key: str, name: str, provider: Any | None, *, protect: bool, kms_key: str | None = None
) -> _EncryptedBucket:
    """The bucket and its key, unless the user has one. Without the key no checkpoint can be read, so both have the same
    protection."""
    from_provider: dict[str, Any] = {"provider": provider} if provider is not None else {}
    lifecycle: dict[str, Any] = {"lifecycle": {"prevent_destroy": True}} if protect else {}
    if kms_key is None:
        encryption = kms.AwsKey(
            scope,
            f"{key}-key",
            description=f"Checkpoints in {name}",
            enable_key_rotation=True,
            deletion_window_in_days=KEY_DELETION_DAYS,
            **lifecycle,
            **from_provider,
        )
        kms.AwsAlias(
            scope, f"{key}-key-alias", name=bucket_key_alias(name), target_key_id=encryption.key_id, **from_provider
        )
        kms_key = encryption.arn
    made = s3.AwsBucket(scope, key, bucket=name, force_destroy=False, **lifecycle, **from_provider)
    s3.AwsBucketOwnershipControls(
        scope, f"{key}-ownership", bucket=made.id, rule={"object_ownership": "BucketOwnerEnforced"}, **from_provider
    )
    s3.AwsBucketPublicAccessBlock(
        scope,
        f"{key}-private",
        bucket=made.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        **from_provider,
    )
    versioning = s3.AwsBucketVersioning(
        scope, f"{key}-versions", bucket=made.id, versioning_configuration={"status": "Enabled"}, **from_provider
    )
    s3.AwsBucketServerSideEncryptionConfiguration(
        scope,
        f"{key}-encryption",
        bucket=made.id,
        rule=[
            s3.AwsBucketServerSideEncryptionConfiguration.RuleProperty(
                bucket_key_enabled=True,
                apply_server_side_encryption_by_default={
                    "sse_algorithm": "aws:kms",
                    "kms_master_key_id": kms_key,
                },
            )
        ],
        **from_provider,
    )
    rules = s3.AwsBucketLifecycleConfiguration
    everything = [rules.FilterProperty(prefix="")]
    unfinished = rules.AbortIncompleteMultipartUploadProperty(days_after_initiation=ABORT_UPLOAD_DAYS)
    deleted = rules.NoncurrentVersionExpirationProperty(noncurrent_days=NONCURRENT_DAYS)
    rules(
        scope,
        f"{key}-lifecycle",
        bucket=made.id,
        rule=[
            rules.RuleProperty(
                id="unfinished-uploads",
                status="Enabled",
                filter=everything,
                abort_incomplete_multipart_upload=[unfinished],
            ),
            rules.RuleProperty(
                id="deleted-versions", status="Enabled", filter=everything, noncurrent_version_expiration=[deleted]
            ),
        ],
        depends_on=[versioning],
        **from_provider,
    )
    policy = document(deny_http([made.arn, f"{made.arn}/*"], "s3:*"))
    s3.AwsBucketPolicy(scope, f"{key}-policy", bucket=made.id, policy=json.dumps(policy), **from_provider)
    return _EncryptedBucket(made, kms_key, versioning)


def _replication(
    scope: Any, bucket: Bucket, provider: Any | None, *, source: _EncryptedBucket, target: _EncryptedBucket
) -> None:
    """Copies new objects. S3 refuses it until both buckets have versions."""
    from_provider: dict[str, Any] = {"provider": provider} if provider is not None else {}
    made, replica = source.bucket, target.bucket
    own = role(scope, "replication", replication_name(bucket.name), "s3.amazonaws.com")
    policy = document(
        allow("ReadSource", ["s3:GetReplicationConfiguration", "s3:ListBucket"], [made.arn]),
        allow(
            "ReadVersions",
            ["s3:GetObjectVersionForReplication", "s3:GetObjectVersionAcl", "s3:GetObjectVersionTagging"],
            [f"{made.arn}/*"],
        ),
        allow("WriteReplica", ["s3:ReplicateObject", "s3:ReplicateTags"], [f"{replica.arn}/*"]),
        allow("ReadKey", ["kms:Decrypt"], [source.key]),
        allow("WriteKey", ["kms:Encrypt"], [target.key]),
    )
    iam.AwsRolePolicy(scope, "replication-policy", name="replication", role=own.name, policy=json.dumps(policy))
    s3.AwsBucketReplicationConfiguration(
        scope,
        "replication",
        bucket=made.id,
        role=own.arn,
        rule=[
            s3.AwsBucketReplicationConfiguration.RuleProperty(
                id="all",
                status="Enabled",
                priority=0,
                filter={"prefix": ""},
                delete_marker_replication={"status": "Disabled"},
                source_selection_criteria={"sse_kms_encrypted_objects": {"status": "Enabled"}},
                destination={
                    "bucket": replica.arn,
                    "storage_class": "STANDARD_IA",
                    "encryption_configuration": {"replica_kms_key_id": target.key},
                },
            )
        ],
        depends_on=[source.versioning, target.versioning],
        **from_provider,
    )
