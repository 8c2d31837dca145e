"""Access to AWS with boto3, with the credentials of the shell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from spotladder.errors import EnvironmentFailure
from spotladder.extras import require
from spotladder_infra.names import ForeignBucket

Connect = Callable[[str, str], Any]
"""Makes a boto3 client for a service in a region."""

CREDENTIALS = "check the credentials of this shell (aws sts get-caller-identity)"
"""The remedy for most errors of AWS."""

ABSENT = frozenset(
    {
        "404",
        "NoSuchBucket",
        "NoSuchBucketPolicy",
        "ServerSideEncryptionConfigurationNotFoundError",
        "NotFound",
        "NoSuchEntity",
        "ResourceNotFoundException",
        "ParameterNotFound",
        "RepositoryNotFoundException",
    }
)
"""Codes of errors for a resource or a setting that does not exist."""


def sdk() -> Any:
    """The module boto3, imported when it is first needed. Raises EnvironmentFailure when it is not installed."""
    require("aws", "boto3")
    import boto3  # noqa: PLC0415 – slow to import, and only for fleets on AWS

    return boto3


def connect(service: str, region: str) -> Any:
    """A boto3 client with short timeouts. Raises EnvironmentFailure when boto3 is not installed."""
    boto3 = sdk()
    from botocore.config import Config  # noqa: PLC0415

    limits = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 2})
    return boto3.client(service, region_name=region, config=limits)


@contextmanager
def answering(what: str = "AWS does not answer", remedy: str = "") -> Iterator[None]:
    """Raises EnvironmentFailure, `WHAT: the error: REMEDY`, for an error of AWS in the block."""
    require("aws", "boto3")
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 – with boto3

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        message = f"{what}: {' '.join(str(error).split())}"
        raise EnvironmentFailure(f"{message}: {remedy}" if remedy else message) from None


def code_of(error: Any) -> str:
    """The code of a botocore ClientError: `AccessDenied`."""
    return str(error.response.get("Error", {}).get("Code", ""))


def existing(call: Callable[[], Any]) -> Any:
    """The response of a call; None when the resource does not exist. Raises other errors of botocore."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

    try:
        return call()
    except ClientError as error:
        if code_of(error) in ABSENT:
            return None
        raise


def pairs(tags: Any) -> dict[str, str]:
    """The tags of a response by their keys."""
    return {entry["Key"]: entry["Value"] for entry in tags or ()}


def bucket_tags(connect: Connect, name: str, region: str) -> dict[str, str] | None:
    """The tags of a bucket, none if they may not be read; None when it does not exist. Raises ForeignBucket, and
    EnvironmentFailure if AWS does not answer."""
    with answering(remedy=CREDENTIALS):
        client = connect("s3", region)
        from botocore.exceptions import ClientError  # noqa: PLC0415 – with boto3

        try:
            if existing(lambda: client.head_bucket(Bucket=name)) is None:
                return None
        except ClientError as error:
            raise ForeignBucket(code_of(error)) from None
        try:
            return pairs(client.get_bucket_tagging(Bucket=name)["TagSet"])
        except ClientError:
            return {}
