"""Zones and instance types that the clouds offer: moto's copy of AWS's offerings, and a fake of Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder_infra.topology import online
from spotladder_infra.topology.read import read_fleet
from tests.topology.amazon import Amazon, account, no_credentials
from tests.topology.builders import TODAY, fleet_file
from tests.topology.google import GoogleCloud, google_cloud


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Amazon]:
    with account(monkeypatch) as made:
        monkeypatch.setattr(online, "connect", made.connect)
        yield made


def ask(folder: Path, *changes: tuple[str, str]) -> None:
    fleet_file(folder, *changes)
    read_fleet(folder / "fleet.yaml", TODAY, online=True)


@pytest.mark.usefixtures("gcp")
def test_a_version_that_eks_does_not_offer(aws: Amazon, tmp_path: Path) -> None:
    aws.versions = {}
    with pytest.raises(InvalidSpec, match=r"EKS does not offer 1\.35 in us-east-1: choose another version"):
        ask(tmp_path, ("[p5.48xlarge]", "[m5.large]"))


@pytest.mark.usefixtures("gcp")
def test_an_instance_type_that_is_not(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec) as error:
        ask(tmp_path, ("[p5.48xlarge]", "[p9.48xlarge]"))
    assert "spec.clusters[0].pools[3].instanceTypes[0]: p9.48xlarge is not offered in us-east-1a" in str(error.value)
    assert str(error.value).startswith(f"{tmp_path}/fleet.yaml:")


@pytest.mark.usefixtures("gcp")
def test_an_addon_that_is_not_offered(aws: Amazon, tmp_path: Path) -> None:
    aws.offered["vpc-cni"] = ["v1.30.0-eksbuild.1"]
    with pytest.raises(InvalidSpec) as error:
        ask(tmp_path, ("[p5.48xlarge]", "[m5.large]"))
    assert "spec.clusters[0].addons.vpc-cni: EKS does not offer add-on vpc-cni v1.22.4-eksbuild.3" in str(error.value)
    assert "set addons.vpc-cni to v1.30.0-eksbuild.1" in str(error.value)
    place = "    bucket: acme-east\n"
    pinned = (place, f"{place}    addons: {{vpc-cni: v1.30.0-eksbuild.1}}\n")
    ask(tmp_path, ("[p5.48xlarge]", "[m5.large]"), pinned)


def test_without_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_credentials(tmp_path, monkeypatch)
    with pytest.raises(
        EnvironmentFailure, match=r"cluster east: AWS cannot be queried: .* \(aws sts get-caller-identity\)"
    ):
        ask(tmp_path)


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
def gcp(monkeypatch: pytest.MonkeyPatch, aws: Amazon) -> Iterator[GoogleCloud]:
    with google_cloud(monkeypatch) as cloud:
        google_offers(cloud)
        yield cloud


def fails(folder: Path, *changes: tuple[str, str]) -> str:
    with pytest.raises(InvalidSpec) as error:
        ask(folder, ("[p5.48xlarge]", "[m5.large]"), *changes)
    return str(error.value).removeprefix(f"{folder}/fleet.yaml:")


def test_what_google_does_not_offer(gcp: GoogleCloud, tmp_path: Path) -> None:
    del gcp.compute[f"{PROJECT}/zones/us-central1-a/machineTypes/g2-standard-8"]
    ask(tmp_path, ("[p5.48xlarge]", "[m5.large]"))  # one zone is enough
    del gcp.compute[f"{PROJECT}/zones/us-central1-b/machineTypes/g2-standard-8"]
    found = fails(tmp_path)
    assert "spec.clusters[1].pools[1].instanceTypes[0]: g2-standard-8 is not offered in us-central1-a, us-c" in found


def test_families_that_are_not_offered(gcp: GoogleCloud, tmp_path: Path) -> None:
    for letter in "ab":
        gcp.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes"] = {}
    found = fails(tmp_path, ("role: heads, families: [m7i]", "role: heads, families: [m9z]"))
    assert "spec.clusters[0].pools[0].families[0]: no instance of family m9z is offered in us-east-1a, us-e" in found
    assert "spec.clusters[1].pools[0].families[0]: no machine of family n2 is offered in us-central1-a, us-" in found


def test_a_zone_a_version_and_an_accelerator_that_google_has_not(gcp: GoogleCloud, tmp_path: Path) -> None:
    gcp.compute[f"{PROJECT}/regions/us-central1"]["zones"].pop(1)
    gcp.compute[f"{PROJECT}/zones/us-central1-a/machineTypes/n1-standard-8"] = G2
    zone = 'spec.clusters[1].zones[1]: "us-central1-b" is not a zone of us-central1 (it has us-central1-a, us-'
    found = fails(
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
        ask(tmp_path, ("[p5.48xlarge]", "[m5.large]"))
