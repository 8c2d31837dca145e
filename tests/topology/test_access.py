"""How kubectl and helm reach a cluster: the user's kubeconfig, or one that is written without credentials."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra import access
from spotladder_infra.kubecontext import KubeContext
from tests.topology.amazon import account
from tests.topology.builders import fleet_file


def test_an_existing_cluster_is_a_context_of_the_users_kubeconfig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = fleet_file(tmp_path).fleet
    monkeypatch.setenv("KUBECONFIG", "/a:/b")
    assert access.target(fleet, fleet.cluster("lab"), tmp_path) == KubeContext("/a:/b", "lab-admin")
    assert access.target(fleet, fleet.cluster("laptop"), tmp_path).context == "kind-laptop"
    monkeypatch.delenv("KUBECONFIG")
    assert access.target(fleet, fleet.cluster("lab"), tmp_path).kubeconfig.endswith("/.kube/config")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with account(monkeypatch):
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
    assert written["users"][0]["user"]["exec"]["args"] == ["infra", "token", "aws", "east", "us-east-1"]
    assert (Path(found.kubeconfig).stat().st_mode & 0o777) == 0o600
    before = Path(found.kubeconfig).stat().st_mtime_ns
    access.target(fleet, fleet.cluster("east"), tmp_path / "state")
    assert Path(found.kubeconfig).stat().st_mtime_ns == before, "an unchanged kubeconfig is not written again"


def test_the_error_names_a_missing_cluster(aws: None, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path).fleet
    with pytest.raises(EnvironmentFailure, match=r"cluster east: .*apply its stack first"):
        access.target(fleet, fleet.cluster("east"), tmp_path / "state")


@pytest.mark.usefixtures("aws")
def test_the_token_of_an_eks_cluster_needs_no_request() -> None:
    found = access.credential("aws", "east", "us-east-1")
    assert found["kind"] == "ExecCredential"
    prefix, _, encoded = found["status"]["token"].partition(".")
    assert prefix == "k8s-aws-v1"
    assert b"Action=GetCallerIdentity" in base64.urlsafe_b64decode(encoded + "==")
    left = datetime.fromisoformat(found["status"]["expirationTimestamp"]) - datetime.now(UTC)
    assert timedelta(minutes=13) < left < timedelta(minutes=15)


def test_a_profile_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nosuch")
    with pytest.raises(
        EnvironmentFailure, match=r"no token for EKS cluster east: .*nosuch.*: check the credentials of"
    ):
        access.credential("aws", "east", "us-east-1")


def test_a_token_of_no_cloud_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="expected cloud aws or gcp, got 'azure'"):
        access.credential("azure", "east", "us-east-1")


def test_several_clusters_share_a_kubeconfig(aws: None, tmp_path: Path) -> None:
    import boto3

    fleet = fleet_file(tmp_path).fleet
    role = "arn:aws:iam::123456789012:role/eks"
    boto3.client("eks", region_name="us-east-1").create_cluster(name="east", roleArn=role, resourcesVpcConfig={})
    found = access.merged([fleet.cluster("east"), fleet.cluster("east")])
    assert [entry["name"] for entry in found["contexts"]] == ["east", "east"]
    assert found["current-context"] == "east"
