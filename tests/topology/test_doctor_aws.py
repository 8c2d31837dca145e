"""The findings of `doctor` on AWS: moto's account and, for services that moto lacks, responses that botocore checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import account
from spotladder_infra.amazon import bucket_tags
from spotladder_infra.doctor import owners
from spotladder_infra.doctor.aws import checks
from spotladder_infra.doctor.result import CheckResult, Status, results
from spotladder_infra.facts.quotas import quota_class
from spotladder_infra.topology.fleet import Fleet
from tests.topology.amazon import G_SPOT, Amazon, no_credentials
from tests.topology.amazon import account as moto_account
from tests.topology.builders import fleet_file

G_ON_DEMAND, STANDARD = "L-DB2E81BA", "L-1216C47A"


@pytest.fixture
def amazon(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    with moto_account(monkeypatch) as made:
        yield made


def fleet_of(folder: Path, *changes: tuple[str, str]) -> Fleet:
    return fleet_file(folder, ("[p5.48xlarge]", "[m5.large]"), *changes).fleet


def examined(amazon: Amazon, fleet: Fleet) -> dict[str, CheckResult]:
    """The results by check; those of cluster east, the only one on AWS."""
    table = checks(fleet, [(0, fleet.cluster("east"))], amazon.connect)
    return {found.check: found for found in results(table)}


def failed(found: dict[str, CheckResult]) -> dict[str, str]:
    return {name: one.found for name, one in found.items() if one.status is Status.FAILED}


@pytest.mark.parametrize(("cpus", "most"), [("10k", "10000"), ("1Ki", "1024"), ("9500m", "9.5"), ("2e3", "2000")])
def test_the_limit_of_a_pool_may_have_every_suffix(cpus: str, most: str, amazon: Amazon, tmp_path: Path) -> None:
    limited = ("limits: {nodes: 16}", f"limits: {{cpu: {cpus}}}")
    amazon.quotas[G_SPOT] = 1
    found = [one.fix for one in examined(amazon, fleet_of(tmp_path, limited)).values() if G_SPOT in one.fix]
    assert found == [f"request {most} in Service Quotas, ec2/{G_SPOT}, region us-east-1"]


def test_an_account_that_has_everything(amazon: Amazon, tmp_path: Path) -> None:
    found = examined(amazon, fleet_of(tmp_path))
    assert found.pop("spot role").status is Status.WARNING
    assert {one.status for one in found.values()} == {Status.OK}, found
    assert found["credentials"].found == "arn:aws:sts::123456789012:user/moto"


def test_a_new_account_gets_the_role_of_spot_once(amazon: Amazon, tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path)
    assert "create-service-linked-role --aws-service-name spot" in examined(amazon, fleet)["spot role"].fix
    for _ in range(2):
        account.ensure_spot_role(amazon.connect, "us-east-1")
    assert examined(amazon, fleet)["spot role"].status is Status.OK
    amazon.refused.add("ListRoles")
    with pytest.raises(EnvironmentFailure, match=r"AWSServiceRoleForEC2Spot cannot be created.*once in the account"):
        account.ensure_spot_role(amazon.connect, "us-east-1")


@pytest.mark.parametrize(
    ("admin", "arn", "refused"),
    [
        ("role/admins", "arn:aws:sts::123456789012:assumed-role/admins/ana@example.com", False),
        ("role/aws-reserved/sso.amazonaws.com/Admin_1", "arn:aws:sts::123456789012:assumed-role/Admin_1/ana", False),
        ("user/team/ana", "arn:aws:iam::123456789012:user/team/ana", False),
        ("role/admins", "arn:aws:iam::123456789012:user/admins", True),
        ("role/admins", "arn:aws:sts::999999999999:assumed-role/admins/ana", True),
        ("role/admins", "arn:aws:iam::123456789012:root", True),
    ],
)
def test_an_identity_that_is_no_administrator(admin: str, arn: str, refused: bool, tmp_path: Path) -> None:
    network = "    network: {cidr: 10.0.0.0/16}\n"
    api = f"    api: {{admins: ['arn:aws:iam::123456789012:{admin}']}}\n"
    east = fleet_of(tmp_path, (network, network + api)).cluster("east")
    assert bool(account.locked_out(east, arn)) is refused


def test_quotas_beside_the_pools(amazon: Amazon, tmp_path: Path) -> None:
    """g5-spot may have 16 nodes of 4 vCPUs; the system nodes are two m7i.large."""
    amazon.quotas = {G_SPOT: 0.0, G_ON_DEMAND: 4.0, STANDARD: 3.0}
    found = examined(amazon, fleet_of(tmp_path, ("accelerator: {type: nvidia-a10g}}", "limits: {nodes: 2}}")))
    assert failed(found) == {
        "spot vCPUs, G and VT": "0; needs at least 4",
        "on-demand vCPUs, standard families": "3; needs at least 4",
    }
    spot = found["spot vCPUs, G and VT"]
    assert spot.fix == f"request 64 in Service Quotas, ec2/{G_SPOT}, region us-east-1"
    on_demand = found["on-demand vCPUs, G and VT"]
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


def test_names_that_are_taken(amazon: Amazon, tmp_path: Path) -> None:
    fleet, s3 = fleet_of(tmp_path), boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket="acme-east")
    assert failed(examined(amazon, fleet)) == {"names": "bucket acme-east exists and does not belong to fleet training"}
    s3.put_bucket_tagging(Bucket="acme-east", Tagging={"TagSet": [{"Key": "spotladder-fleet", "Value": "training"}]})
    assert failed(examined(amazon, fleet)) == {}
    network = {"subnetIds": ["subnet-1"], "securityGroupIds": []}
    eks = boto3.client("eks", region_name="us-east-1")
    eks.create_cluster(name="east", roleArn="arn:aws:iam::123456789012:role/x", resourcesVpcConfig=network)
    assert failed(examined(amazon, fleet)) == {"names": "cluster east exists and does not belong to fleet training"}


EXISTS = (
    "    network: {cidr: 10.0.0.0/16}\n",
    "    existing: prod\n    network: {existing: {subnetTags: {tier: private}}}\n",
)


def test_an_existing_cluster_has_what_identities_need(amazon: Amazon, tmp_path: Path) -> None:
    fleet = fleet_of(tmp_path, EXISTS)
    assert "prod is not in this account, us-east-1" in failed(examined(amazon, fleet))["prod"]
    amazon.cluster = {"name": "prod", "version": "1.34", "accessConfig": {"authenticationMode": "CONFIG_MAP"}}
    checked = checks(fleet, [(0, fleet.cluster("east"))], amazon.connect)
    found = {one.found: one.fix for one in results(checked) if one.check == "prod"}
    assert found == {
        "has no access entries, with which nodes join": "aws eks update-cluster-config --region us-east-1 --name prod "
        "--access-config authenticationMode=API_AND_CONFIG_MAP",
        "has no add-on eks-pod-identity-agent, which gives pods their roles": "aws eks create-addon --region us-east-1 "
        "--cluster-name prod --addon-name eks-pod-identity-agent",
        "runs Kubernetes 1.34, the file has 1.35": 'set kubernetes to "1.34"',
    }
    amazon.cluster |= {"version": "1.35", "accessConfig": {"authenticationMode": "API"}}
    amazon.installed.add("eks-pod-identity-agent")
    ready = examined(amazon, fleet)
    assert failed(ready) == {}
    assert ready["prod"].found == "Kubernetes 1.35, with all that is needed"
    amazon.cluster["computeConfig"] = {"enabled": True}
    auto = examined(amazon, fleet)["prod"]
    assert (auto.status, auto.found.partition(":")[0]) == (Status.WARNING, "is in Auto Mode")


def test_offers_are_named_with_their_fields(amazon: Amazon, tmp_path: Path) -> None:
    """tests/topology/test_online.py has all of them."""
    amazon.versions = {"1.35": "EXTENDED_SUPPORT"}
    found = examined(amazon, fleet_of(tmp_path))["zones, versions and instances"]
    assert (found.status, found.fix) == (Status.WARNING, "change the fleet file")
    assert found.found.startswith("spec.clusters[0].kubernetes: EKS 1.35 has extended support only, which costs extra")


def test_a_check_without_permission_is_skipped(amazon: Amazon, tmp_path: Path) -> None:
    amazon.refused = {"GetServiceQuota", "DescribeClusterVersions"}
    found = examined(amazon, fleet_of(tmp_path))
    skipped = {name: one.fix for name, one in found.items() if one.status is Status.SKIPPED}
    allow = "grant this identity the permission"
    assert skipped == {"vCPU quotas": allow, "zones, versions and instances": allow}
    assert failed(found) == {}


def test_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_credentials(tmp_path, monkeypatch)
    found = examined(Amazon(), fleet_of(tmp_path))
    why = "AWS does not accept the credentials of this shell: Unable to locate credentials"
    assert failed(found) == {"credentials": why}
    assert found["all other checks"].status is Status.SKIPPED


def test_the_state_bucket(amazon: Amazon) -> None:
    def found() -> CheckResult:
        (one,) = owners.state_bucket(lambda: bucket_tags(amazon.connect, "acme-state", "us-east-1"))
        return one

    assert (found().status, found().found, found().fix) == (Status.FAILED, "does not exist", "spotladder infra state")
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="acme-state")
    assert found().status is Status.OK
    amazon.refused = {"HeadBucket"}
    assert (found().status, found().found) == (Status.FAILED, "may not be used (AccessDeniedException)")
