"""Failures that users meet are one line: what is wrong, where, what to do. The texts are Terraform's own; those of
tests/infra/test_terraform_failures.py are not repeated here."""

from __future__ import annotations

import pytest

from spotladder_infra.terraform.events import Diagnostic
from spotladder_infra.terraform.failures import explain


def explained(*diagnostics: Diagnostic) -> list[str]:
    return explain(
        "east",
        diagnostics,
        unlock="terraform -chdir=out force-unlock",
        lock_file="aws.lock.hcl",
        import_command="terraform import {} ID".format,
    )


@pytest.mark.parametrize(
    ("remedy", "summary", "detail"),
    [
        (
            "give this shell credentials",
            "Attempted to load application default credentials",
            "could not find default credentials",
        ),
        ("delete aws.lock.hcl", "Inconsistent dependency lock file", "the cached package does not match"),
        (
            "delete aws.lock.hcl",
            "Failed to resolve provider packages",  # OpenTofu breaks the line elsewhere
            "Could not resolve provider aws: locked provider 5.9 does\nnot match configured version constraint >= 6",
        ),
        (
            "doctor prints one command",
            "Error when reading or editing Project",
            "Error 403: Cloud Resource Manager API has not been used in project acme-ml before or it is disabled.",
        ),
        (
            "if it belongs to this cluster",
            "creating EKS Cluster (east)",
            "ResourceInUseException: Cluster already exists with name: east",
        ),
        ("docs/destroy.md", "Instance cannot be destroyed", "has lifecycle.prevent_destroy set"),
        (
            "outside of the state",
            "deleting EC2 Subnet",
            "api error DependencyViolation: has dependencies and cannot be deleted",
        ),
        ("", "creating EC2 EIP", "api error AddressLimitExceeded: The maximum number has been reached"),
        ("", "Failed to get existing workspaces: operation error S3: ListObjectsV2", "api error AccessDenied: Denied"),
        ("", "Failed to get existing workspaces: querying Cloud Storage failed", "dial tcp: no such host"),
        ("infra state", "Failed to get existing workspaces: querying failed: storage: bucket doesn't exist", ""),
    ],
)
def test_remedies(remedy: str, summary: str, detail: str) -> None:
    (line,) = explained(Diagnostic("error", summary, detail, "aws_x.y"))
    assert line.startswith(f"cluster east: aws_x.y: {summary}")
    assert (remedy in line) if remedy else line.endswith(detail)
    assert "\n" not in line


def test_each_line_once_and_no_warnings() -> None:
    missing = Diagnostic("error", "No valid credential sources found", "x")
    assert len(explained(missing, missing, Diagnostic("warning", "Deprecated", ""))) == 1


def test_a_cause_is_reported_once() -> None:
    missing = Diagnostic("error", 'Failed to get existing workspaces: S3 bucket "b" does not exist.', "")
    cloud = Diagnostic("error", "operation error S3: ListObjectsV2, NoSuchBucket:", "")
    roles = [Diagnostic("error", f"creating IAM Role ({name})", "EntityAlreadyExists: x") for name in "ab"]
    assert len(explained(missing, cloud, *roles)) == 3


def test_an_object_that_exists_names_the_import() -> None:
    exists = Diagnostic("error", "creating IAM Role (east-node)", "EntityAlreadyExists", "aws_iam_role.node-role")
    (line,) = explained(exists)
    assert line == (
        "cluster east: aws_iam_role.node-role: creating IAM Role (east-node): EntityAlreadyExists: if it belongs to "
        "this cluster: terraform import aws_iam_role.node-role ID; otherwise delete or rename it, or rename the cluster"
    )


def test_request_ids_are_left_out_and_long_texts_cut() -> None:
    noisy = Diagnostic("error", "creating X", "StatusCode: 400, RequestID: 0a1b-2c, api error Y: " + "z" * 900)
    line = explained(noisy)[0]
    assert "0a1b" not in line
    assert len(line) < 500
