"""Zones and instance types that the clouds offer: moto's copy of AWS's offerings, and a fake of Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.google import Google
from spotladder_infra.topology import online
from tests.topology.amazon import Amazon, account
from tests.topology.builders import fleet_file
from tests.topology.google import GoogleCloud, google_cloud

M5 = ("[p5.48xlarge]", "[m5.large]")
"""moto offers no P5."""


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    with account(monkeypatch) as made:
        yield made


def on_aws(aws: Amazon, folder: Path, *changes: tuple[str, str]) -> str:
    east = fleet_file(folder, *changes).fleet.cluster("east")
    return "\n".join(str(found) for found in online.aws(aws.connect, 0, east))


def test_a_version_that_eks_does_not_offer(aws: Amazon, tmp_path: Path) -> None:
    aws.versions = {}
    found = on_aws(aws, tmp_path, M5)
    assert found == "spec.clusters[0].kubernetes: EKS does not offer 1.35 in us-east-1: choose another version"


def test_a_zone_of_the_table_that_the_account_lacks(aws: Amazon, tmp_path: Path) -> None:
    """Each account has two of the zones of us-west-1, and Terraform would fail after it has created a half."""
    west = ("    region: us-east-1\n    zones: [us-east-1a, us-east-1b]\n", "    region: us-west-1\n")
    bucket = ("{name: acme-east, cloud: aws, region: us-east-1}", "{name: acme-east, cloud: aws, region: us-west-1}")
    found = on_aws(aws, tmp_path, M5, west, bucket, ("zones: [us-east-1a]", "zones: [us-west-1a]"))
    lacks = (
        "spec.clusters[0].region: this account has no zone us-west-1c, which is a default: name two or more in zones"
    )
    assert f"{lacks} (it has us-west-1a, us-west-1b)" in found.splitlines()


def test_a_zone_in_which_eks_has_no_control_plane(aws: Amazon, tmp_path: Path) -> None:
    """The names of zones differ between accounts. Terraform would fail after it has created the network."""
    found = on_aws(
        aws, tmp_path, M5, ("zones: [us-east-1a, us-east-1b]", "zones: [us-east-1a, us-east-1b, us-east-1e]")
    )
    assert found == (
        "spec.clusters[0].zones: us-east-1e is use1-az3 in this account, where EKS creates no control plane: name "
        "other zones"
    )


def test_what_ec2_does_not_offer(aws: Amazon, tmp_path: Path) -> None:
    heads = ("role: heads, families: [m7i]", "role: heads, families: [m9z]")
    found = on_aws(aws, tmp_path, ("[p5.48xlarge]", "[p9.48xlarge]"), heads).splitlines()
    assert found[0].startswith("spec.clusters[0].pools[0].families[0]: no instance of family m9z is offered in us-e")
    assert found[1].startswith("spec.clusters[0].pools[3].instanceTypes[0]: p9.48xlarge is not offered in us-east-1a")


def test_an_addon_that_is_not_offered(aws: Amazon, tmp_path: Path) -> None:
    aws.offered["vpc-cni"] = ["v1.30.0-eksbuild.1"]
    found = on_aws(aws, tmp_path, M5)
    assert "spec.clusters[0].addons.vpc-cni: EKS does not offer add-on vpc-cni v1.22.4-eksbuild.3" in found
    assert "set addons.vpc-cni to v1.30.0-eksbuild.1" in found
    place = "    bucket: acme-east\n"
    pinned = (place, f"{place}    addons: {{vpc-cni: v1.30.0-eksbuild.1}}\n")
    assert not on_aws(aws, tmp_path, M5, pinned)


PROJECT = "projects/acme-ml"
G2 = {"guestCpus": 8, "accelerators": [{"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}]}


def google_offers(cloud: GoogleCloud) -> None:
    """The resources that the fleet's clusters on Google Cloud need."""
    zones = [f"https://compute.googleapis.com/compute/v1/{PROJECT}/zones/us-central1-{letter}" for letter in "abcf"]
    cloud.compute[f"{PROJECT}/regions/us-central1"] = {"name": "us-central1", "zones": zones}
    for letter in "ab":
        cloud.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes"] = {"items": [{"name": "n2-standard-2"}]}
        cloud.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes/g2-standard-8"] = G2
    cloud.container[f"{PROJECT}/locations/us-central1/serverConfig"] = {
        "validMasterVersions": ["1.36.0-gke.1"],
        "channels": [
            {"channel": "RAPID", "validVersions": ["1.36.0-gke.1"]},
            {"channel": "REGULAR", "validVersions": ["1.35.8-gke.1036000", "1.34.9-gke.1", "1.35.7-gke.2"]},
        ],
    }


@pytest.fixture
def gcp(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleCloud]:
    with google_cloud(monkeypatch) as cloud:
        google_offers(cloud)
        yield cloud


def on_google(folder: Path, *changes: tuple[str, str]) -> str:
    west = fleet_file(folder, *changes).fleet.cluster("west")
    return "\n".join(str(found) for found in online.gcp(Google(), 1, west))


def test_what_google_does_not_offer(gcp: GoogleCloud, tmp_path: Path) -> None:
    del gcp.compute[f"{PROJECT}/zones/us-central1-a/machineTypes/g2-standard-8"]
    assert not on_google(tmp_path), "one zone is enough"
    for letter in "ab":
        gcp.compute.pop(f"{PROJECT}/zones/us-central1-{letter}/machineTypes/g2-standard-8", None)
        gcp.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes"] = {}
    found = on_google(tmp_path)
    assert "spec.clusters[1].pools[1].instanceTypes[0]: g2-standard-8 is not offered in us-central1-a, us-c" in found
    assert "spec.clusters[1].pools[0].families[0]: no machine of family n2 is offered in us-central1-a, us-" in found


def test_a_zone_a_version_and_an_accelerator_that_google_has_not(gcp: GoogleCloud, tmp_path: Path) -> None:
    gcp.compute[f"{PROJECT}/regions/us-central1"]["zones"].pop(1)
    gcp.compute[f"{PROJECT}/zones/us-central1-a/machineTypes/n1-standard-8"] = G2
    zone = 'spec.clusters[1].zones[1]: "us-central1-b" is not a zone of us-central1 (it has us-central1-a, us-'
    found = on_google(
        tmp_path,
        ("    autoscaler: compute-class\n", '    autoscaler: compute-class\n    kubernetes: "1.36"\n'),
        ("instanceTypes: [g2-standard-8]", "instanceTypes: [n1-standard-8]"),
        ("accelerator: {type: nvidia-l4}\n", "accelerator: {type: nvidia-tesla-t4, count: 2}\n"),
    )
    assert zone in found
    assert "spec.clusters[1].kubernetes: GKE does not offer 1.36 in us-central1: choose one of 1.35, 1.34" in found
    assert "n1-standard-8 has 1 nvidia-l4 in us-central1-a, not 2 nvidia-tesla-t4" in found


def test_a_project_that_may_not_be_asked(gcp: GoogleCloud, tmp_path: Path) -> None:
    gcp.refuses[f"{PROJECT}/regions/us-central1"] = 403
    with pytest.raises(EnvironmentFailure, match=r"Google Cloud refuses GET .*403 refused by the test"):
        on_google(tmp_path)
