"""Existing resources of a GKE stack in the project: those of the cluster are imported, others are reported."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.terraform import adopt
from spotladder_infra.terraform.events import Action, Planned
from spotladder_infra.topology.fleet import Fleet
from tests.topology.builders import fleet_file
from tests.topology.google import GoogleCloud, google_cloud

GOLDEN = Path(__file__).parents[1] / "infra" / "golden"
PROJECT = "projects/acme-ml"
REGION = f"{PROJECT}/regions/us-central1"
LABELS = {"spotladder-fleet": "training", "spotladder-cluster": "alpha"}
DESCRIBED = {"description": "spotladder-fleet=training spotladder-cluster=alpha"}
NETWORK = f"https://compute.googleapis.com/compute/v1/{PROJECT}/global/networks/alpha"


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleCloud]:
    with google_cloud(monkeypatch) as made:
        yield made


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """The synthesized stack of the cluster, with a bucket and a repository."""
    found = json.loads((GOLDEN / "alpha.json").read_text())
    found["resource"]["google_storage_bucket"] = {"checkpoints": {"name": "acme-alpha"}}
    repository = {"repository_id": "alpha", "location": "us-central1"}
    found["resource"]["google_artifact_registry_repository"] = {"images": repository}
    (tmp_path / "cdk.tf.json").write_text(json.dumps(found))
    return tmp_path


def plan(folder: Path) -> list[Planned]:
    stack = json.loads((folder / "cdk.tf.json").read_text())["resource"]
    return [Planned(f"{kind}.{name}", Action.CREATE) for kind, named in stack.items() for name in named]


def plant(cloud: GoogleCloud) -> None:
    """Everything that an apply created before it was killed."""
    cloud.compute[f"{PROJECT}/global/networks/alpha"] = DESCRIBED
    cloud.compute[f"{REGION}/subnetworks/alpha-nodes"] = {"network": NETWORK}
    cloud.compute[f"{REGION}/routers/alpha"] = {"network": NETWORK, "nats": [{"name": "alpha"}]}
    gke = f"{PROJECT}/locations/us-central1/clusters/alpha"
    cloud.container[gke] = {"name": "alpha", "resourceLabels": LABELS}
    cloud.container[f"{gke}/nodePools/system"] = {"name": "system"}
    for account in ("node", "karpenter"):
        cloud.iam[f"{PROJECT}/serviceAccounts/alpha-{account}@acme-ml.iam.gserviceaccount.com"] = DESCRIBED
    cloud.iam[f"{PROJECT}/roles/spotladder_karpenter_alpha"] = DESCRIBED
    cloud.buckets["acme-alpha"] = {"name": "acme-alpha", "labels": LABELS}
    cloud.registry[f"{PROJECT}/locations/us-central1/repositories/alpha"] = {"labels": LABELS}


EXPECTED = {
    "google_compute_network.network": f"{PROJECT}/global/networks/alpha",
    "google_compute_subnetwork.nodes": f"{REGION}/subnetworks/alpha-nodes",
    "google_compute_router.router": f"{REGION}/routers/alpha",
    "google_compute_router_nat.nat": f"{REGION}/routers/alpha/alpha",
    "google_container_cluster.cluster": f"{PROJECT}/locations/us-central1/clusters/alpha",
    "google_container_node_pool.system": "acme-ml/us-central1/alpha/system",
    "google_service_account.node": f"{PROJECT}/serviceAccounts/alpha-node@acme-ml.iam.gserviceaccount.com",
    "google_service_account.karpenter": f"{PROJECT}/serviceAccounts/alpha-karpenter@acme-ml.iam.gserviceaccount.com",
    "google_project_iam_custom_role.karpenter-role": f"{PROJECT}/roles/spotladder_karpenter_alpha",
    "google_storage_bucket.checkpoints": "acme-alpha",
    "google_artifact_registry_repository.images": f"{PROJECT}/locations/us-central1/repositories/alpha",
}
"""Address → id, in the formats that the provider's pages name for `terraform import`."""


@pytest.mark.usefixtures("cloud")
def test_an_empty_project(fleet: Fleet, stack: Path) -> None:
    assert adopt.imports(fleet, fleet.cluster("alpha"), stack, plan(stack)) == {}


def test_existing_resources_are_imported(cloud: GoogleCloud, fleet: Fleet, stack: Path) -> None:
    plant(cloud)
    assert adopt.imports(fleet, fleet.cluster("alpha"), stack, plan(stack)) == EXPECTED
    known = [entry for entry in plan(stack) if entry.address != "google_container_cluster.cluster"]
    found = adopt.imports(fleet, fleet.cluster("alpha"), stack, known)
    assert "google_container_cluster.cluster" not in found, "it is in the state already"
    assert adopt.imports(fleet, fleet.cluster("alpha"), stack, []) == {}


def test_a_deleted_role_is_created_again(cloud: GoogleCloud, fleet: Fleet, stack: Path) -> None:
    cloud.iam[f"{PROJECT}/roles/spotladder_karpenter_alpha"] = {**DESCRIBED, "deleted": True}
    assert adopt.imports(fleet, fleet.cluster("alpha"), stack, plan(stack)) == {}


GKE = f"{PROJECT}/locations/us-central1/clusters/alpha"
OTHER_FLEET = {"resourceLabels": {**LABELS, "spotladder-fleet": "other"}}
REPOSITORY = f"{PROJECT}/locations/us-central1/repositories/alpha"


@pytest.mark.parametrize(
    ("address", "foreign"),
    [
        ("google_compute_network.network", ("compute", f"{PROJECT}/global/networks/alpha", {"description": "mine"})),
        ("google_compute_network.network", ("compute", f"{PROJECT}/global/networks/alpha", {})),
        ("google_compute_router.router", ("compute", f"{REGION}/routers/alpha", {"network": f"{NETWORK}-2"})),
        ("google_container_cluster.cluster", ("container", GKE, OTHER_FLEET)),
        ("google_project_iam_custom_role.karpenter-role", ("iam", f"{PROJECT}/roles/spotladder_karpenter_alpha", {})),
        ("google_storage_bucket.checkpoints", ("buckets", "acme-alpha", {"labels": {}})),
        ("google_artifact_registry_repository.images", ("registry", REPOSITORY, {})),
    ],
)
def test_a_name_that_belongs_to_something_else(
    cloud: GoogleCloud, fleet: Fleet, stack: Path, address: str, foreign: tuple[str, str, dict[str, Any]]
) -> None:
    plant(cloud)
    api, path, entry = foreign
    getattr(cloud, api)[path] = entry
    with pytest.raises(EnvironmentFailure) as refused:
        adopt.imports(fleet, fleet.cluster("alpha"), stack, plan(stack))
    (line,) = str(refused.value).splitlines()
    assert line.startswith(f"cluster alpha: {address}: ")
    assert "does not belong to this cluster (expected the tags spotladder-fleet=training" in line


def test_a_bucket_of_another_project(cloud: GoogleCloud, fleet: Fleet, stack: Path) -> None:
    cloud.refuses["b/acme-alpha"] = 403
    with pytest.raises(EnvironmentFailure, match=r"google_storage_bucket\.checkpoints: acme-alpha exists and does not"):
        adopt.imports(fleet, fleet.cluster("alpha"), stack, plan(stack))


def test_a_project_that_may_not_be_read(cloud: GoogleCloud, fleet: Fleet, stack: Path) -> None:
    cloud.refuses[f"{PROJECT}/global/networks/alpha"] = 500
    with pytest.raises(
        EnvironmentFailure, match="cluster alpha: the existing resources cannot be listed: Google Cloud"
    ):
        adopt.imports(fleet, fleet.cluster("alpha"), stack, plan(stack))
