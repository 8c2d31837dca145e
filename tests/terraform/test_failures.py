"""Each failure that users meet is one line: what is wrong, where, what to do. The texts are Terraform's own."""

from __future__ import annotations

import pytest

from spotladder_infra.terraform.events import Diagnostic
from spotladder_infra.terraform.failures import Kind, Lock, Remedies, explain, kind_of, lock_of

REMEDIES = Remedies("terraform -chdir=out force-unlock", "aws.lock.hcl", "terraform import {} ID".format)

LOCKED = Diagnostic(
    "error",
    "Error acquiring the state lock",
    """Error message: operation error S3: PutObject, https response error StatusCode: 412, RequestID: 4D2A, HostID: x,
api error PreconditionFailed: At least one of the pre-conditions you specified did not hold
Lock Info:
  ID:        6b8a1d22-0c3f-7a7f-2a64-9d3a44c0f5f1
  Path:      acme-state/fleet/training/east.tfstate
  Operation: OperationTypeApply
  Who:       ana@build-7
  Version:   1.11.4
  Created:   2026-11-22 18:03:11.531 +0000 UTC
  Info:

Terraform acquires a state lock to protect the state from being written
by multiple users at the same time.""",
)


def test_a_lock_names_its_holder() -> None:
    lock = Lock("6b8a1d22-0c3f-7a7f-2a64-9d3a44c0f5f1", "apply", "ana@build-7", "2026-11-22 18:03:11.531 +0000 UTC")
    assert lock_of(LOCKED) == lock
    assert explain("east", [LOCKED], REMEDIES) == [
        (
            "cluster east: the state is locked by ana@build-7 for apply since 2026-11-22 18:03:11.531 +0000 UTC "
            "(lock 6b8a1d22-0c3f-7a7f-2a64-9d3a44c0f5f1): wait until that run ends; if it no longer runs: "
            "terraform -chdir=out force-unlock 6b8a1d22-0c3f-7a7f-2a64-9d3a44c0f5f1"
        )
    ]


@pytest.mark.parametrize(
    ("kind", "summary", "detail"),
    [
        (Kind.CREDENTIALS, "No valid credential sources found", "failed to refresh cached credentials, no EC2 IMDS"),
        (Kind.CREDENTIALS, "Retrieving AWS account details", "api error ExpiredToken: The token has expired"),
        (Kind.CREDENTIALS, "Attempted to load application default credentials", "could not find default credentials"),
        (Kind.ACCOUNT, "AWS account ID not allowed: 111111111111", ""),
        (Kind.PROVIDER, "Failed to query available provider packages", "no available releases match >= 5.95.0"),
        (Kind.PINNED, "Inconsistent dependency lock file", "the cached package does not match"),
        (Kind.PROVIDER, "Failed to resolve provider packages", "Could not resolve provider aws: no such host"),
        (
            Kind.PINNED,
            "Failed to resolve provider packages",  # OpenTofu breaks the line elsewhere
            "Could not resolve provider aws: locked provider 5.9 does\nnot match configured version constraint >= 6",
        ),
        (
            Kind.PINNED,
            "Failed to query available provider packages",
            "locked provider registry.terraform.io/hashicorp/aws 5.100.0 does not match\nconfigured version constraint",
        ),
        (
            Kind.NETWORK,
            "Retrieving AWS account details: validating provider credentials",
            "retrieving caller identity from STS: StatusCode: 0, request send failed, dial tcp: lookup: no such host",
        ),
        (Kind.CREDENTIALS, "validating provider credentials", "retrieving caller identity from STS: StatusCode: 403"),
        (
            Kind.API_DISABLED,
            "Error when reading or editing Project",
            "Error 403: Cloud Resource Manager API has not been used in project acme-ml before or it is disabled.",
        ),
        (Kind.PROVIDER, "Unsupported Terraform Core version", "This configuration does not support 1.10.0"),
        (Kind.QUOTA, "creating EC2 EIP", "api error AddressLimitExceeded: The maximum number has been reached"),
        (Kind.QUOTA, "creating EC2 VPC", "api error VpcLimitExceeded: The maximum number of VPCs has been reached."),
        (
            Kind.QUOTA,
            "Error creating NodePool",
            "googleapi: Error 403: Quota 'CPUS' exceeded. Limit: 24.0, quotaExceeded",
        ),
        (Kind.QUOTA, "creating IAM Role", "api error LimitExceeded: Cannot exceed quota for RolesPerAccount: 1000"),
        (
            Kind.COLLISION,
            "creating IAM Role (east-node)",
            "api error EntityAlreadyExists: Role east-node already exists.",
        ),
        (
            Kind.COLLISION,
            "creating EKS Cluster (east)",
            "ResourceInUseException: Cluster already exists with name: east",
        ),
        (Kind.COLLISION, "creating S3 Bucket (b)", "api error BucketAlreadyExists: the name is not available"),
        (Kind.PROTECTED, "Instance cannot be destroyed", "has lifecycle.prevent_destroy set"),
        (Kind.NOT_EMPTY, "deleting S3 Bucket (acme-east)", "api error BucketNotEmpty: The bucket is not empty"),
        (Kind.IN_USE, "deleting EC2 Subnet", "api error DependencyViolation: has dependencies and cannot be deleted"),
        (Kind.DENIED, "creating EKS Cluster", "api error AccessDeniedException: is not authorized to perform"),
        (Kind.BACKEND, "Failed to get existing workspaces", 'S3 bucket "acme-state" does not exist.'),
        (Kind.STALE, "Saved plan is stale", "The given plan file can no longer be applied"),
        (Kind.OTHER, "waiting for EKS Cluster", "unexpected state 'FAILED'"),
    ],
)
def test_kinds(kind: Kind, summary: str, detail: str) -> None:
    diagnostic = Diagnostic("error", summary, detail, "aws_x.y")
    assert kind_of(diagnostic) is kind
    line = explain("east", [diagnostic], REMEDIES)[0]
    assert line.startswith(f"cluster east: aws_x.y: {summary}")
    assert "\n" not in line


def test_each_line_once_and_no_warnings() -> None:
    missing = Diagnostic("error", "No valid credential sources found", "x")
    assert len(explain("east", [missing, missing, Diagnostic("warning", "Deprecated", "")], REMEDIES)) == 1


def test_a_cause_is_reported_once() -> None:
    missing = Diagnostic("error", 'Failed to get existing workspaces: S3 bucket "b" does not exist.', "")
    cloud = Diagnostic("error", "operation error S3: ListObjectsV2, NoSuchBucket:", "")
    roles = [Diagnostic("error", f"creating IAM Role ({name})", "EntityAlreadyExists: x") for name in "ab"]
    assert len(explain("east", [missing, cloud, *roles], REMEDIES)) == 3


def test_an_object_that_exists_names_the_import() -> None:
    exists = Diagnostic("error", "creating IAM Role (east-node)", "EntityAlreadyExists", "aws_iam_role.node-role")
    (line,) = explain("east", [exists], REMEDIES)
    assert line == (
        "cluster east: aws_iam_role.node-role: creating IAM Role (east-node): EntityAlreadyExists: if it belongs to "
        "this cluster: terraform import aws_iam_role.node-role ID; otherwise delete or rename it, or rename the cluster"
    )


def test_request_ids_are_left_out_and_long_texts_cut() -> None:
    noisy = Diagnostic("error", "creating X", "StatusCode: 400, RequestID: 0a1b-2c, api error Y: " + "z" * 900)
    line = explain("east", [noisy], REMEDIES)[0]
    assert "0a1b" not in line
    assert len(line) < 500
