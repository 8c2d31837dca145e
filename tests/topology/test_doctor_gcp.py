"""The findings of `doctor` on Google Cloud, with the client libraries on a fake of its APIs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.doctor.gcp import checks
from spotladder_infra.doctor.result import CheckResult, Status, results
from spotladder_infra.topology.fleet import Fleet
from tests.topology.builders import EVERY_OPTION, fleet_file
from tests.topology.google import GoogleCloud, google_cloud
from tests.topology.test_online import PROJECT, google_offers

E2 = {"guestCpus": 4}


def quotas(**limits: float) -> list[dict[str, Any]]:
    return [{"metric": metric, "limit": limit, "usage": 0} for metric, limit in limits.items()]


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleCloud]:
    with google_cloud(monkeypatch) as made:
        google_offers(made)
        made.compute[PROJECT] = {"name": "acme-ml", "quotas": quotas(GPUS_ALL_REGIONS=8)}
        region = made.compute[f"{PROJECT}/regions/us-central1"]
        region["quotas"] = quotas(CPUS=200, PREEMPTIBLE_CPUS=0, NVIDIA_L4_GPUS=8, PREEMPTIBLE_NVIDIA_L4_GPUS=8)
        for letter in "ab":
            made.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes/e2-standard-4"] = E2
        yield made


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


def examined(fleet: Fleet) -> dict[str, CheckResult]:
    """The results by place and check; those of cluster west."""
    table = checks(fleet, [(1, fleet.cluster("west"))])
    return {f"{found.scope}: {found.check}": found for found in results(table)}


def failed(found: dict[str, CheckResult]) -> dict[str, str]:
    return {name: one.found for name, one in found.items() if one.status is Status.FAILED}


@pytest.mark.usefixtures("cloud")
def test_a_project_that_has_everything(fleet: Fleet) -> None:
    found = examined(fleet)
    assert {one.status for one in found.values()} == {Status.OK}, found
    assert found["gcp us-central1: CPUS"].found == "200"
    assert found["west: names"].found == "available, or owned by this fleet"


def test_quotas_beside_the_pools(cloud: GoogleCloud, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ('      price: {perNodeHour: "0.34"}', "      limits: {nodes: 16}")).fleet
    cloud.compute[PROJECT]["quotas"] = quotas(GPUS_ALL_REGIONS=0)
    region = cloud.compute[f"{PROJECT}/regions/us-central1"]
    region["quotas"] = quotas(CPUS=8, PREEMPTIBLE_CPUS=64, NVIDIA_L4_GPUS=1, PREEMPTIBLE_NVIDIA_L4_GPUS=1)
    found = examined(fleet)
    assert failed(found) == {
        "gcp us-central1: GPUS_ALL_REGIONS": "0; needs at least 1",
        "gcp us-central1: CPUS": "8; needs at least 16",
    }
    spot = found["gcp us-central1: PREEMPTIBLE_NVIDIA_L4_GPUS"]
    assert (spot.status, spot.found) == (Status.WARNING, "1; the pools may grow to 16")
    assert "PREEMPTIBLE_NVIDIA_L4_GPUS, us-central1" in spot.fix
    assert found["gcp us-central1: PREEMPTIBLE_CPUS"].found == "64; the pools may grow to 128"


@pytest.mark.usefixtures("cloud")
def test_a_preemptible_quota_that_was_never_requested(cloud: GoogleCloud, fleet: Fleet) -> None:
    """Spot VMs then count against the ordinary quota."""
    cloud.compute[f"{PROJECT}/regions/us-central1"]["quotas"] = quotas(
        CPUS=200, PREEMPTIBLE_CPUS=0, NVIDIA_L4_GPUS=1, PREEMPTIBLE_NVIDIA_L4_GPUS=0
    )
    found = examined(fleet)
    assert found["gcp us-central1: NVIDIA_L4_GPUS"].found == "1; the pools may grow to 2"
    assert "gcp us-central1: PREEMPTIBLE_NVIDIA_L4_GPUS" not in found


def test_names_that_are_taken(cloud: GoogleCloud, fleet: Fleet) -> None:
    cluster = f"{PROJECT}/locations/us-central1/clusters/west"
    cloud.container[cluster] = {"name": "west", "resourceLabels": {}}
    cloud.buckets["acme-central"] = {"name": "acme-central", "labels": {"spotladder-fleet": "other"}}
    table = checks(fleet, [(1, fleet.cluster("west"))])
    assert [found.found for found in results(table) if found.status is Status.FAILED] == [
        "cluster west exists and does not belong to fleet training",
        "bucket acme-central exists and does not belong to fleet training",
    ]
    cloud.container[cluster] = {"name": "west", "resourceLabels": {"spotladder-fleet": "training"}}
    cloud.buckets["acme-central"]["labels"] = {"spotladder-fleet": "training"}
    assert failed(examined(fleet)) == {}
    cloud.refuses["b/acme-central"] = 403
    assert failed(examined(fleet)) == {"west: names": "bucket acme-central belongs to another account or project"}


def test_an_existing_cluster_has_what_identities_need(cloud: GoogleCloud, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ("    network: {cidr: 10.1.0.0/20}\n", "    existing: prod\n")).fleet
    assert failed(examined(fleet)) == {"west: prod": "prod is not in acme-ml, us-central1"}
    path = f"{PROJECT}/locations/us-central1/clusters/prod"
    limits = [{"resourceType": "cpu", "maximum": "64"}]
    cloud.container[path] = {
        "currentMasterVersion": "1.35.1-gke.1396000",
        "autoscaling": {"enableNodeAutoprovisioning": True, "resourceLimits": limits},
    }
    table = checks(fleet, [(1, fleet.cluster("west"))])
    found = {
        one.found: one.fix.partition(" --location us-central1 ")[2] for one in results(table) if one.check == "prod"
    }
    assert found == {
        "has no Workload Identity Federation, which gives pods access to the bucket": "--workload-pool "
        "acme-ml.svc.id.goog",
        "is not reached at its DNS endpoint": "--enable-dns-access",
        "accepts no tokens of the home cluster at its DNS endpoint": "--enable-k8s-tokens-via-dns",
        "creates no nodes with nvidia-l4: auto-provisioning has no limit for it": "--enable-autoprovisioning "
        "--autoprovisioning-config-file FILE, with a limit for nvidia-l4",
    }
    limits.append({"resourceType": "nvidia-l4", "maximum": "8"})
    dns = {"allowExternalTraffic": True, "enableK8sTokensViaDns": True}
    cloud.container[path] |= {
        "workloadIdentityConfig": {"workloadPool": "acme-ml.svc.id.goog"},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": dns},
    }
    ready = examined(fleet)
    assert failed(ready) == {}
    assert ready["west: prod"].found == "Kubernetes 1.35.1-gke.1396000, with all that is needed"
    assert "gcp us-central1: CPUS" in ready


def test_a_cluster_in_autopilot_mode_is_refused(cloud: GoogleCloud, tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ("    network: {cidr: 10.1.0.0/20}\n", "    existing: prod\n")).fleet
    cloud.container[f"{PROJECT}/locations/us-central1/clusters/prod"] = {
        "currentMasterVersion": "1.35.1-gke.1396000",
        "autopilot": {"enabled": True},
    }
    assert failed(examined(fleet)) == {"west: prod": "is in Autopilot mode, which is not supported"}


def test_a_zonal_cluster_is_found_in_its_zone(cloud: GoogleCloud, tmp_path: Path) -> None:
    zonal = ("    network: {cidr: 10.1.0.0/20}\n", "    existing: us-central1-b/prod\n")
    fleet = fleet_file(tmp_path, zonal).fleet
    pool = {"name": "default-pool", "config": {"workloadMetadataConfig": {"mode": "GCE_METADATA"}}}
    cloud.container[f"{PROJECT}/locations/us-central1-b/clusters/prod"] = {
        "currentMasterVersion": "1.35.1-gke.1396000",
        "workloadIdentityConfig": {"workloadPool": "acme-ml.svc.id.goog"},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "nodePools": [pool, {"name": "new", "config": {"workloadMetadataConfig": {"mode": "GKE_METADATA"}}}],
    }
    table = list(results(checks(fleet, [(1, fleet.cluster("west"))])))
    fixes = [one.fix for one in table if one.check == "us-central1-b/prod"]
    where = "--project acme-ml --location us-central1-b"
    assert fixes == [
        f"gcloud container node-pools update default-pool --cluster prod {where} --workload-metadata GKE_METADATA",
        f"gcloud container clusters update prod {where} --enable-k8s-tokens-via-dns",
    ]


def test_tpus_have_their_own_quotas(cloud: GoogleCloud, tmp_path: Path) -> None:
    """Not those of GPUs. A region reports the quota of v5e only."""
    pool = "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}"
    for machine, metric in (
        ("ct5lp-hightpu-4t", "TPU_LITE_PODSLICE_V5"),
        ("ct6e-standard-4t", "TPUS_PER_TPU_FAMILY of CT6E"),
    ):
        family = machine.partition("-")[0]
        tpus = [{"guestAcceleratorType": family, "guestAcceleratorCount": 4}]
        for letter in "ab":
            types = cloud.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes/{machine}"] = dict(E2)
            types |= {"name": machine, "guestCpus": 8, "accelerators": tpus}
        fleet = fleet_file(tmp_path, (pool, f"instanceTypes: [{machine}]\n      tpuTopology: 2x2")).fleet
        found = examined(fleet)
        assert found[f"gcp us-central1: {metric}"].status is Status.SKIPPED
        assert not [name for name in found if f"{family.upper()}_GPUS" in name]
    region = cloud.compute[f"{PROJECT}/regions/us-central1"]
    region["quotas"] += quotas(PREEMPTIBLE_TPU_LITE_PODSLICE_V5=2)
    fleet = fleet_file(tmp_path, (pool, "instanceTypes: [ct5lp-hightpu-4t]\n      tpuTopology: 2x2")).fleet
    assert "gcp us-central1: PREEMPTIBLE_TPU_LITE_PODSLICE_V5" in failed(examined(fleet))


def test_the_quota_of_an_accelerator_has_another_name(cloud: GoogleCloud, tmp_path: Path) -> None:
    mega = [{"guestAcceleratorType": "nvidia-h100-mega-80gb", "guestAcceleratorCount": 8}]
    for letter in "ab":
        types = cloud.compute[f"{PROJECT}/zones/us-central1-{letter}/machineTypes/a3-megagpu-8g"] = dict(E2)
        types |= {"name": "a3-megagpu-8g", "guestCpus": 8, "accelerators": mega}
    cloud.compute[f"{PROJECT}/regions/us-central1"]["quotas"] += quotas(NVIDIA_H100_MEGA_GPUS=0)
    pool = "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}"
    fleet = fleet_file(tmp_path, (pool, "instanceTypes: [a3-megagpu-8g]")).fleet
    assert failed(examined(fleet))["gcp us-central1: NVIDIA_H100_MEGA_GPUS"].startswith("0; needs at least 8")


def test_one_command_enables_the_missing_apis(cloud: GoogleCloud, tmp_path: Path) -> None:
    cloud.enabled -= {"cloudresourcemanager", "artifactregistry"}
    check = "gcp acme-ml: APIs"
    found = examined(fleet_file(tmp_path).fleet)
    assert failed(found) == {check: "cloudresourcemanager not enabled"}
    found = examined(fleet_file(tmp_path, *EVERY_OPTION).fleet)
    assert failed(found)[check] == "cloudresourcemanager, artifactregistry, cloudkms not enabled"
    assert found[check].fix == (
        "gcloud services enable cloudresourcemanager.googleapis.com artifactregistry.googleapis.com "
        "cloudkms.googleapis.com --project acme-ml"
    )


def test_no_credentials(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    found = examined(fleet)
    assert found["gcp: credentials"].status is Status.FAILED
    assert found["gcp: all other checks"].status is Status.SKIPPED
