"""The findings of `doctor` on AWS: moto's account and, for services that moto lacks, responses that botocore checks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto import mock_aws

from spotladder.errors import EnvironmentFailure
from spotladder_infra.doctor.aws import Account, quota_class
from spotladder_infra.doctor.result import CheckResult, Status
from spotladder_infra.facts.addons import INSTALLED, PINNED
from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.topology.fleet import Fleet
from tests.topology.addons import Addons
from tests.topology.builders import TODAY, fleet_file

G_SPOT, G_ON_DEMAND, STANDARD, VPCS = "L-3819A6DF", "L-DB2E81BA", "L-1216C47A", "L-F678F1CE"


class Amazon:
    """Quotas, versions of EKS and images, and refused requests. Moto answers everything else."""

    def __init__(self) -> None:
        self.quotas: dict[str, float] = {}
        self.versions = {"1.35": "STANDARD_SUPPORT"}
        self.image = "1.35.7-20261117"
        self.addons = Addons()
        self.refused: set[str] = set()
        self.only_defaults = False

    def connect(self, service: str, region: str) -> Any:
        client = boto3.client(service, region_name=region)
        client.meta.events.register(f"before-call.{service}", self._answer)
        return client

    def _answer(self, model: Any, params: Any, **_: Any) -> Any:
        """Responds to requests that botocore's own serializer has checked; None passes the call to moto."""
        if model.name == "GetServiceQuota" and self.only_defaults:
            return SimpleNamespace(status_code=404), {"Error": {"Code": "NoSuchResourceException", "Message": "none"}}
        if model.name in self.refused:
            error = {"Error": {"Code": "AccessDeniedException", "Message": "not allowed"}}
            return SimpleNamespace(status_code=403), error
        if model.name == "DescribeAddonVersions":
            return SimpleNamespace(status_code=200), self.addons.answer(params["query_string"])
        answer = getattr(self, f"_{model.name}", None)
        return None if answer is None else (SimpleNamespace(status_code=200), answer(str(params)))

    def _GetServiceQuota(self, asked: str) -> Any:  # noqa: N802 – names of AWS's operations
        code = next((code for code in self.quotas if code in asked), None)
        return {"Quota": {"Value": 1000.0 if code is None else self.quotas[code]}}

    def _GetAWSDefaultServiceQuota(self, asked: str) -> Any:  # noqa: N802
        return {"Quota": {"Value": 0.0 if G_SPOT in asked else 5.0}}

    def _DescribeClusterVersions(self, asked: str) -> Any:  # noqa: N802
        found = [(minor, status) for minor, status in self.versions.items() if minor in asked]
        ends = datetime(2027, 3, 27, tzinfo=UTC)
        return {"clusterVersions": [{"versionStatus": status, "endOfStandardSupportDate": ends} for _, status in found]}

    def _GetParameter(self, asked: str) -> Any:  # noqa: N802
        assert "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended" in asked
        return {"Parameter": {"Value": self.image}}


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")):
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield Amazon()


def fleet_of(folder: Path, *changes: tuple[str, str]) -> Fleet:
    return fleet_file(folder, ("[p5.48xlarge]", "[m5.large]"), *changes).fleet


def examined(amazon: Amazon, fleet: Fleet, today: date = TODAY) -> dict[str, CheckResult]:
    """The results by check; those of cluster east, the only one on AWS."""
    account = Account(amazon.connect)
    return {found.check: found for found in account.examine(fleet, [(0, fleet.cluster("east"))], today)}


def failed(results: dict[str, CheckResult]) -> dict[str, str]:
    return {name: found.found for name, found in results.items() if found.status is Status.FAILED}


def test_an_account_that_has_everything(amazon: Amazon, tmp_path: Path) -> None:
    results = examined(amazon, fleet_of(tmp_path))
    assert {found.status for found in results.values()} == {Status.OK}, results
    assert results["credentials"].found == "arn:aws:sts::123456789012:user/moto"
    assert results["Kubernetes version"].found == "1.35, standard support until 2027-03-27"
    assert results["node image"].found == f"{NODE_IMAGE}; the newest is al2023@v20261117"


def test_addons_are_compared_with_the_versions_that_eks_offers(amazon: Amazon, tmp_path: Path) -> None:
    pinned = PINNED["1.35"]
    assert examined(amazon, fleet_of(tmp_path))["add-ons"].found == ", ".join(
        f"{name} {pinned[name]}" for name in INSTALLED
    )
    amazon.addons.offered["coredns"].insert(0, "v1.15.0-eksbuild.1")
    newer = examined(amazon, fleet_of(tmp_path))["add-ons"]
    assert newer.status is Status.OK
    assert newer.found.endswith(f"coredns {pinned['coredns']} (EKS default v1.15.0-eksbuild.1)")
    amazon.addons.offered["coredns"] = ["v1.15.0-eksbuild.1"]
    gone = examined(amazon, fleet_of(tmp_path))["add-ons"]
    assert gone.status is Status.FAILED
    assert gone.found == f"EKS does not offer add-on coredns {pinned['coredns']} for this Kubernetes version"
    assert gone.fix == "set addons.coredns to v1.15.0-eksbuild.1"


def test_quotas_beside_the_pools(amazon: Amazon, tmp_path: Path) -> None:
    """g5-spot may have 16 nodes of 4 vCPUs; the system nodes are two m7i.large."""
    amazon.quotas = {G_SPOT: 0.0, G_ON_DEMAND: 4.0, STANDARD: 3.0, VPCS: 1.0}
    results = examined(amazon, fleet_of(tmp_path, ("accelerator: {type: nvidia-a10g}}", "limits: {nodes: 2}}")))
    assert failed(results) == {
        "spot vCPUs, G and VT": "0; needs at least 4",
        "on-demand vCPUs, standard families": "3; needs at least 4",
        "VPCs left": "0; needs at least 1",  # the default VPC is the one
    }
    spot = results["spot vCPUs, G and VT"]
    assert spot.fix == f"request 64 in Service Quotas, ec2/{G_SPOT}, region us-east-1"
    on_demand = results["on-demand vCPUs, G and VT"]
    assert (on_demand.status, on_demand.found) == (Status.WARNING, "4; the pools may grow to 8")


def test_an_account_that_never_changed_a_quota(amazon: Amazon, tmp_path: Path) -> None:
    """It has AWS's defaults; several are 0."""
    amazon.only_defaults = True
    assert failed(examined(amazon, fleet_of(tmp_path))) == {"spot vCPUs, G and VT": "0; needs at least 4"}


@pytest.mark.parametrize(
    ("instance_type", "kind"),
    [
        ("m7i.large", "standard"),
        ("g4dn.xlarge", "g"),
        ("vt1.3xlarge", "g"),
        ("p4d.24xlarge", "p"),
        ("p5en.48xlarge", "p5"),
        ("inf2.xlarge", "inf"),
        ("trn1.2xlarge", "trn"),
        ("x2gd.large", "x"),
    ],
)
def test_the_quota_of_an_instance_type(instance_type: str, kind: str) -> None:
    assert quota_class(instance_type) == kind


def test_another_account(amazon: Amazon, tmp_path: Path) -> None:
    results = examined(amazon, fleet_of(tmp_path, ('"123456789012"', '"210987654321"')))
    assert failed(results) == {"account": "the credentials are of 123456789012, the fleet file says 210987654321"}


def test_names_that_are_taken(amazon: Amazon, tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path)
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="acme-east")
    iam = boto3.client("iam", region_name="us-east-1")
    iam.create_role(RoleName="east-node", AssumeRolePolicyDocument="{}")
    assert failed(examined(amazon, fleet)) == {
        "names": "IAM role east-node exists and does not belong to fleet training",
        "checkpoint bucket": "s3://acme-east exists and does not belong to fleet training",
    }
    ours = [{"Key": "spotladder-fleet", "Value": "training"}]
    iam.tag_role(RoleName="east-node", Tags=ours)
    boto3.client("s3", region_name="us-east-1").put_bucket_tagging(Bucket="acme-east", Tagging={"TagSet": ours})
    assert failed(examined(amazon, fleet)) == {}


def test_a_cluster_of_another_fleet(amazon: Amazon, tmp_path: Path) -> None:
    network = {"subnetIds": ["subnet-1"], "securityGroupIds": []}
    eks = boto3.client("eks", region_name="us-east-1")
    eks.create_cluster(name="east", roleArn="arn:aws:iam::123456789012:role/x", resourcesVpcConfig=network)
    assert failed(examined(amazon, fleet_of(tmp_path))) == {
        "names": "EKS cluster east exists and does not belong to fleet training"
    }


@pytest.mark.parametrize(
    ("versions", "status", "found"),
    [
        ({}, Status.FAILED, "EKS does not offer 1.35 in us-east-1"),
        ({"1.35": "EXTENDED_SUPPORT"}, Status.WARNING, "1.35 has extended support only, which costs extra"),
    ],
)
def test_versions(versions: dict[str, str], status: Status, found: str, amazon: Amazon, tmp_path: Path) -> None:
    amazon.versions = versions
    result = examined(amazon, fleet_of(tmp_path))["Kubernetes version"]
    assert (result.status, result.found) == (status, found)


def test_an_old_image(amazon: Amazon, tmp_path: Path) -> None:
    old = ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@v20260101,")
    result = examined(amazon, fleet_of(tmp_path, old))["node image"]
    assert (result.status, result.fix) == (Status.WARNING, "set image: al2023@v20261117 on the pools")


def test_what_the_region_does_not_offer(amazon: Amazon, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ("[p5.48xlarge]", "[p9.48xlarge]")).fleet
    found = failed(examined(amazon, fleet))["zones and instances"]
    assert found.startswith("p9.48xlarge is not offered in us-east-1a")


def test_a_check_without_permission_is_skipped(amazon: Amazon, tmp_path: Path) -> None:
    amazon.refused = {"GetServiceQuota", "DescribeClusterVersions"}
    results = examined(amazon, fleet_of(tmp_path))
    skipped = {name: found.fix for name, found in results.items() if found.status is Status.SKIPPED}
    allow = "grant this identity the permission"
    assert skipped == {"vCPU quotas": allow, "network quotas": allow, "Kubernetes version": allow}
    assert failed(results) == {}


def test_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it keeps the credentials of an earlier test
    results = examined(Amazon(), fleet_of(tmp_path))
    assert failed(results) == {"credentials": "Unable to locate credentials"}
    assert results["all other checks"].status is Status.SKIPPED


def test_the_state_bucket(amazon: Amazon) -> None:
    account = Account(amazon.connect)
    (result,) = account.state_bucket("acme-state", "us-east-1")
    assert (result.status, result.found, result.fix) == (Status.FAILED, "does not exist", "spotladder infra state")
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="acme-state")
    (result,) = account.state_bucket("acme-state", "us-east-1")
    assert result.status is Status.OK


def test_without_boto3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from spotladder_infra.amazon import connect

    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(EnvironmentFailure, match=r"pip install 'spotladder\[aws\]'"):
        connect("ec2", "us-east-1")
