"""Access to AWS with boto3, with the credentials of the shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spotladder_infra.packages import require_packages

Connect = Callable[[str, str], Any]
"""Makes a boto3 client for a service in a region."""


def sdk() -> Any:
    """The module boto3, imported when it is first needed. Raises EnvironmentFailure when it is not installed."""
    require_packages("boto3")
    import boto3  # noqa: PLC0415 – slow to import, and only for fleets on AWS

    return boto3


def connect(service: str, region: str) -> Any:
    """A boto3 client with short timeouts. Raises EnvironmentFailure when boto3 is not installed."""
    boto3 = sdk()
    from botocore.config import Config  # noqa: PLC0415

    limits = Config(connect_timeout=5, read_timeout=20, retries={"max_attempts": 2})
    return boto3.client(service, region_name=region, config=limits)
