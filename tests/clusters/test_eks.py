"""EKS, with moto's server: the description of the cluster, the format of the token, and its renewal."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen

import certifi
import pytest

from spotladder.clusters.client import Client
from spotladder.clusters.cloud_cluster import CloudCluster
from spotladder.clusters.cluster_address import ClusterAddress, EksAddress
from spotladder.clusters.eks import HEADER, PREFIX, Eks
from spotladder.clusters.registry import source_of
from spotladder.errors import EnvironmentFailure
from tests.clusters.stepped_clock import SteppedClock


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    import boto3
    from moto.eks.models import eks_backends
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    for name, value in (("AWS_ACCESS_KEY_ID", "AKIAOURS"), ("AWS_SECRET_ACCESS_KEY", "secret")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    role = "arn:aws:iam::123456789012:role/eks"
    with urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")):
        boto3.setup_default_session()
    boto3.client("eks", region_name="us-west-2").create_cluster(
        name="training", roleArn=role, resourcesVpcConfig={"subnetIds": ["subnet-1"]}
    )
    (account,) = eks_backends
    made = eks_backends[account]["us-west-2"].clusters["training"]
    made.certificate_authority["data"] = base64.b64encode(Path(certifi.where()).read_bytes()).decode()
    yield role
    server.stop()


def on_eks(name: str, role: str = "") -> CloudCluster:
    return CloudCluster(lambda: Eks(name, "us-west-2", role=role, clock=SteppedClock()), "aws")


def decoded(headers: dict[str, str]) -> tuple[str, dict[str, list[str]]]:
    token = headers["Authorization"].removeprefix(f"Bearer {PREFIX}")
    assert "=" not in token
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return url.path, parse_qs(url.query)


async def test_an_eks_cluster_is_found_by_its_name_and_region(cloud: str) -> None:
    clock = SteppedClock()
    address = ClusterAddress(eks=EksAddress(name="training", region="us-west-2"))
    source = source_of(address, home=Client(), namespace="", clock=clock)
    found = await source.connection()
    assert found.server.startswith("https://")
    assert found.tls is not None
    assert found.context == "eks:us-west-2/training"
    assert await source.connection() is found
    assert await source.connection(fresh=True) is found  # described again without a change
    path, query = decoded(await found.credentials.headers())
    assert path == "/"
    assert query["Action"] == ["GetCallerIdentity"]
    assert query["X-Amz-SignedHeaders"] == [f"host;{HEADER}"]
    assert query["X-Amz-Expires"] == ["60"]
    assert query["X-Amz-Credential"][0].startswith("AKIAOURS/")
    assert query["X-Amz-Credential"][0].endswith("/us-west-2/sts/aws4_request")


async def test_a_configured_role_is_assumed_first(cloud: str) -> None:
    found = await on_eks("training", role=cloud).connection()
    _, query = decoded(await found.credentials.headers())
    assert not query["X-Amz-Credential"][0].startswith("AKIAOURS/")
    assert query["X-Amz-Security-Token"]


async def test_the_error_for_a_missing_cluster_names_it(cloud: str) -> None:
    with pytest.raises(EnvironmentFailure, match=r"EKS cluster other in us-west-2: .*ResourceNotFound"):
        await on_eks("other").connection()


async def test_missing_aws_credentials_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(EnvironmentFailure, match="Unable to locate credentials"):
        await on_eks("training").connection()
    with pytest.raises(EnvironmentFailure, match="no AWS credentials to assume the role"):
        await on_eks("training", role="arn").connection()
