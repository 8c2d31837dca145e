"""How kubectl and helm reach a cluster: the user's kubeconfig, or one that is written without credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from spotladder.errors import EnvironmentFailure
from spotladder_infra import access
from tests.topology.builders import fleet_file


def test_an_existing_cluster_is_a_context_of_the_users_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = fleet_file(tmp_path).fleet
    monkeypatch.setenv("KUBECONFIG", "/a:/b")
    assert access.target(fleet, fleet.cluster("lab"), tmp_path) == access.Target("/a:/b", "lab-admin")
    assert access.target(fleet, fleet.cluster("laptop"), tmp_path).context == "kind-laptop"
    monkeypatch.delenv("KUBECONFIG")
    assert access.target(fleet, fleet.cluster("lab"), tmp_path).kubeconfig.endswith("/.kube/config")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield


def test_the_kubeconfig_of_an_eks_cluster_has_no_credentials(aws: None, tmp_path: Path) -> None:
    import boto3

    fleet = fleet_file(tmp_path).fleet
    role = "arn:aws:iam::123456789012:role/eks"
    boto3.client("eks", region_name="us-east-1").create_cluster(name="east", roleArn=role, resourcesVpcConfig={})
    found = access.target(fleet, fleet.cluster("east"), tmp_path / "state")
    written = json.loads(Path(found.kubeconfig).read_text())
    assert found.context == written["current-context"] == "east"
    assert written["clusters"][0]["cluster"]["server"].startswith("https://")
    assert written["users"][0]["user"]["exec"]["args"][:4] == ["--region", "us-east-1", "eks", "get-token"]
    assert (Path(found.kubeconfig).stat().st_mode & 0o777) == 0o600
    before = Path(found.kubeconfig).stat().st_mtime_ns
    access.target(fleet, fleet.cluster("east"), tmp_path / "state")
    assert Path(found.kubeconfig).stat().st_mtime_ns == before, "an unchanged kubeconfig is not written again"


def test_a_cluster_that_is_not_there_is_named(aws: None, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    with pytest.raises(EnvironmentFailure, match=r"cluster east: .*apply its stack first"):
        access.target(fleet, fleet.cluster("east"), tmp_path / "state")
