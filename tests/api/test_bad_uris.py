"""Messages for invalid checkpoint addresses. The messages are compared exactly."""

from __future__ import annotations

import pytest

from tests.api.builders import JOB, Case, changed, said_about

CASES = [
    Case(
        "variable in the address",
        "uri: s3://bucket/prefix",
        "uri: $HOME/checkpoints",
        'job.yaml:19:10: spec.checkpoints.uri: contains "$HOME": environment variables are not expanded; write '
        "the value; ~ stands for the home folder",
    ),
    Case(
        "variable in the address of a bucket",
        "uri: s3://bucket/prefix",
        "uri: s3://${BUCKET}/prefix",
        'job.yaml:19:10: spec.checkpoints.uri: contains "${BUCKET}": environment variables are not expanded; '
        "write the value",
    ),
    Case(
        "parent folder in the address of a bucket",
        "uri: s3://bucket/prefix",
        "uri: s3://bucket/../x",
        'job.yaml:19:10: spec.checkpoints.uri: must not contain "." or ".." as a part of the path: write the '
        "path without it",
    ),
    Case(
        "bucket as the folder of the program",
        "uri: s3://bucket/prefix",
        "uri: s3://bucket/prefix\n    programFolder: s3://bucket/out",
        "job.yaml:20:20: spec.checkpoints.programFolder: must be a folder on the disk of the program, not a bucket: "
        "name the bucket in uri",
    ),
    Case(
        "unknown scheme in the address",
        "s3://bucket/prefix",
        "gcs://bucket/prefix",
        'job.yaml:19:10: spec.checkpoints.uri: scheme "gcs" is not supported: use s3://, gs://, az://, file:// '
        "or a plain path; write gs://…",
    ),
    Case(
        "address with one slash",
        "s3://bucket/prefix",
        "s3:/bucket/prefix",
        "job.yaml:19:10: spec.checkpoints.uri: needs two slashes after the colon: write s3://…",
    ),
    Case(
        "path with one slash",
        "s3://bucket/prefix",
        "file:/data/ckpt",
        "job.yaml:19:10: spec.checkpoints.uri: needs two slashes after the colon: write file://…",
    ),
    Case(
        "https address",
        "s3://bucket/prefix",
        "https://bucket.s3.amazonaws.com/prefix",
        "job.yaml:19:10: spec.checkpoints.uri: must name a bucket, like s3://bucket/prefix; an endpoint is set "
        "by AWS_ENDPOINT_URL",
    ),
    Case(
        "address without bucket",
        "s3://bucket/prefix",
        "s3:///prefix",
        "job.yaml:19:10: spec.checkpoints.uri: has no bucket: write s3://bucket/prefix",
    ),
    Case(
        "credentials in the address",
        "s3://bucket/prefix",
        "s3://KEY:SECRET@bucket/prefix",
        "job.yaml:19:10: spec.checkpoints.uri: must not contain credentials: set them in the environment or "
        "name a secret in credentials",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_message_for_an_invalid_checkpoint_address(case: Case) -> None:
    assert said_about(changed(JOB, (case.old, case.new))) == [case.message]
