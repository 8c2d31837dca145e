"""Servers for tests, on a free port of 127.0.0.1, always stopped."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def moto(environment: pytest.MonkeyPatch) -> Iterator[str]:
    """An S3 server; yields its endpoint. The environment says how to reach it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        endpoint = f"http://127.0.0.1:{port}"
        use_s3(environment, endpoint, "test", "test")
        yield endpoint
    finally:
        server.stop()


def use_s3(environment: pytest.MonkeyPatch, endpoint: str, key: str, secret: str) -> None:
    environment.setenv("AWS_ENDPOINT_URL", endpoint)
    environment.setenv("AWS_ACCESS_KEY_ID", key)
    environment.setenv("AWS_SECRET_ACCESS_KEY", secret)
    environment.setenv("AWS_REGION", "us-east-1")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        environment.delenv(name, raising=False)


def new_bucket(endpoint: str) -> str:
    """The address of a fresh bucket on an S3 server."""
    import boto3  # type: ignore[import-untyped]

    name = f"bucket-{secrets.token_hex(4)}"
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=name)
    return f"s3://{name}/some prefix"
