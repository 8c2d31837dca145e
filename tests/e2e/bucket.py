"""The bucket for checkpoints: moto's S3 server, in its own process, at an address that pods can reach."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import URLError
from urllib.request import urlopen

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store

NAME = "checkpoints"


@dataclass(frozen=True)
class BucketServer:
    """One bucket. `environment` has the variables with which a program reaches it. `also` are more endpoints that jobs
    may use."""

    endpoint: str
    process: subprocess.Popen[str]
    also: tuple[str, ...] = ()

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }

    def tenancy(self, *namespaces: str) -> list[dict[str, list[str]]]:
        """The controller's `tenancy`: jobs of these namespaces (`*`: all) may use this bucket, and all clusters and
        priority classes."""
        shared = {"endpoints": [self.endpoint, *self.also], "clusters": ["*"], "priorityClasses": ["*"]}
        return [{"namespaces": list(namespaces), **shared}]

    def refuse(self, refuses: bool) -> None:
        """Answer every request with 503, or as usual again."""
        assert self.process.stdin
        print("refuse" if refuses else "answer", file=self.process.stdin, flush=True)

    def log(self, namespace: str, job: str) -> CommitLog:
        """The commit log of a job."""
        return CommitLog(open_store(f"s3://{NAME}/{namespace}", environment=self.environment), job)


@contextmanager
def bucket(address: str) -> Iterator[BucketServer]:
    """A bucket at this address of this machine, inside the block."""
    import boto3

    process = subprocess.Popen(
        [sys.executable, "-m", "tests.s3_server", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        endpoint = process.stdout.readline().strip()
        _answers(endpoint)
        found = BucketServer(endpoint, process)
        boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",  # noqa: S106 – moto takes any
        ).create_bucket(Bucket=NAME)
        yield found
    finally:
        process.kill()
        process.wait()


def _answers(endpoint: str, limit: float = 30.0) -> None:
    end = time.monotonic() + limit
    while True:
        try:
            with urlopen(endpoint, timeout=5):
                return
        except URLError:
            assert time.monotonic() < end, f"no S3 server at {endpoint}"
            time.sleep(0.1)
