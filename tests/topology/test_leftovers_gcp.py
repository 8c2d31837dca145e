"""The remaining resources of a GKE cluster in its project are found, and those of other owners are not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import checkpoints, leftovers
from spotladder_infra.topology.fleet import Fleet
from tests.topology.builders import fleet_file
from tests.topology.google import GoogleCloud, google_cloud

PROJECT = "projects/acme-ml"
NETWORK = f"https://compute.googleapis.com/compute/v1/{PROJECT}/global/networks/west"
OURS = {"spotladder-cluster": "west"}
OF_GKE = {"goog-k8s-cluster-name": "west"}


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleCloud]:
    with google_cloud(monkeypatch) as made:
        yield made


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


def plant(cloud: GoogleCloud, collection: str, **places: dict[str, Any]) -> None:
    """One resource in each zone or region (`us_central1_a`)."""
    items: dict[str, Any] = {}
    for name, entry in places.items():
        place = name.replace("_", "-")
        scope = f"zones/{place}" if place.count("-") == 2 else f"regions/{place}"
        items[scope] = {collection: [{"selfLink": f"{scope}/{collection}/{entry['name']}", **entry}]}
    items["zones/europe-west9-z"] = {"warning": {"code": "NO_RESULTS_ON_PAGE"}}
    cloud.compute[f"{PROJECT}/aggregated/{collection}"] = {"items": items}


def found(fleet: Fleet, *, keep: bool = True) -> set[tuple[str, str]]:
    listed = leftovers.find(fleet, fleet.cluster("west"), keep_checkpoints=keep)
    return {(entry.kind, entry.identifier) for entry in listed}


def test_of_an_existing_cluster_only_what_spotladder_has_labelled(cloud: GoogleCloud, tmp_path: Path) -> None:
    cloud.container[f"{PROJECT}/locations/us-central1/clusters/west"] = {"name": "west"}
    cloud.compute[f"{PROJECT}/global/networks/west"] = {"name": "west"}
    cloud.compute[f"{PROJECT}/global/firewalls"] = {"items": [{"name": "yours", "network": NETWORK}]}
    plant(
        cloud, "instances",
        us_central1_a={"name": "yours", "labels": OF_GKE, "networkInterfaces": [{"network": NETWORK}]},
        us_central1_b={"name": "node-2", "labels": {**OURS, "karpenter-sh-nodepool": "l4-spot"}},
    )  # fmt: skip
    cloud.buckets["acme-central"] = {"name": "acme-central", "labels": OURS, "location": "US-CENTRAL1"}
    exists = ("    network: {cidr: 10.1.0.0/20}\n", "    existing: west\n")
    assert found(fleet_file(tmp_path, exists).fleet) == {("node", "node-2")}


def test_instances_and_disks_by_their_labels(cloud: GoogleCloud, fleet: Fleet) -> None:
    plant(
        cloud, "instances",
        us_central1_a={"name": "node-1", "labels": {**OF_GKE, "karpenter-sh-nodepool": "l4-spot"}, "status": "RUNNING"},
        us_central1_b={"name": "node-2", "labels": {**OURS, "karpenter-sh-nodepool": "l4-spot"}, "status": "STOPPING"},
        us_central1_c={"name": "system-1", "labels": OF_GKE},
        us_central1_f={"name": "of-another", "labels": {"spotladder-cluster": "other"}},
        us_east1_b={"name": "same-name-elsewhere", "labels": OF_GKE},
    )  # fmt: skip
    plant(cloud, "disks", us_central1_a={"name": "pvc-1", "labels": OF_GKE}, us_central1_b={"name": "mine"})
    expected = {("node", "node-1"), ("node", "node-2"), ("instance", "system-1"), ("disk", "pvc-1")}
    assert found(fleet) == expected
    assert leftovers.nodes(fleet.cluster("west")) == [leftovers.Leftover("node", "node-1", "l4-spot, us-central1-a")]


def test_resources_in_the_network_of_a_cluster(cloud: GoogleCloud, fleet: Fleet) -> None:
    """These have no labels. The external load balancer is identified by its firewall rule, its address by the load
    balancer."""
    cloud.compute[f"{PROJECT}/global/networks/west"] = {"name": "west"}
    other = NETWORK.replace("west", "other-west")
    cloud.compute[f"{PROJECT}/global/firewalls"] = {
        "items": [
            {"name": "k8s-fw-a1b2", "network": NETWORK},
            {"name": "gke-west-1-vms", "network": NETWORK},
            {"name": "of-another", "network": other},
        ]
    }
    plant(
        cloud, "forwardingRules",
        us_central1={"name": "a1b2"},
        us_east1={"name": "c3d4", "network": other},
    )  # fmt: skip
    plant(
        cloud, "addresses",
        us_central1={"name": "balancer-ip", "users": ["regions/us-central1/forwardingRules/a1b2"]},
        us_east1={"name": "free-ip"},
    )  # fmt: skip
    plant(cloud, "networkEndpointGroups", us_central1_a={"name": "k8s1-x", "network": NETWORK})
    plant(cloud, "routers", us_central1={"name": "west", "network": NETWORK})
    plant(cloud, "subnetworks", us_central1={"name": "west-nodes", "network": NETWORK})
    plant(cloud, "instances", us_central1_a={"name": "bastion", "networkInterfaces": [{"network": NETWORK}]})
    assert found(fleet) == {
        ("network", "west"),
        ("firewall rule", "k8s-fw-a1b2"),
        ("firewall rule", "gke-west-1-vms"),
        ("forwarding rule", "a1b2"),
        ("address", "balancer-ip"),
        ("network endpoint group", "k8s1-x"),
        ("router", "west"),
        ("subnetwork", "west-nodes"),
        ("instance", "bastion"),
    }


def test_what_has_the_name_of_the_cluster(cloud: GoogleCloud, fleet: Fleet) -> None:
    cloud.container[f"{PROJECT}/locations/us-central1/clusters/west"] = {"name": "west"}
    node = "west-node@acme-ml.iam.gserviceaccount.com"
    cloud.iam[f"{PROJECT}/serviceAccounts/{node}"] = {"email": node}
    cloud.buckets["scratch"] = {"name": "scratch", "labels": OURS}
    cloud.buckets["acme-central"] = {"name": "acme-central", "labels": OURS}
    cloud.buckets["of-another"] = {"name": "of-another"}
    expected = {("GKE cluster", "west"), ("service account", node), ("bucket", "scratch")}
    assert found(fleet) == expected
    assert found(fleet, keep=False) == {*expected, ("bucket", "acme-central")}


@pytest.mark.parametrize(
    ("deleted", "expected"), [(False, {("custom role", "spotladder_karpenter_alpha")}), (True, set())]
)
def test_the_role_of_karpenter(cloud: GoogleCloud, fleet: Fleet, deleted: bool, expected: set[tuple[str, str]]) -> None:
    cloud.iam[f"{PROJECT}/roles/spotladder_karpenter_alpha"] = {"deleted": deleted}
    listed = leftovers.find(fleet, fleet.cluster("alpha"))
    assert {(entry.kind, entry.identifier) for entry in listed} == expected


def test_a_checkpoint_bucket_is_deleted_with_all_versions(cloud: GoogleCloud, fleet: Fleet) -> None:
    bucket = fleet.spec.buckets[1]
    cloud.buckets[bucket.name] = {"name": bucket.name, "softDeletePolicy": {"retentionDurationSeconds": "604800"}}
    cloud.objects[bucket.name] = {(f"team-a/job/{name}", number) for name in ("a b", "c") for number in range(3)}
    checkpoints.delete(bucket, fleet.cluster("west"))
    assert bucket.name not in cloud.buckets
    patched = cloud.asked.index(f"PATCH b/{bucket.name}")
    first = next(index for index, line in enumerate(cloud.asked) if line.startswith("DELETE"))
    assert patched < first, "soft deletion is switched off before the first object is deleted"
    checkpoints.delete(bucket, fleet.cluster("west"))


def test_a_bucket_of_another_project_is_not_deleted(cloud: GoogleCloud, fleet: Fleet) -> None:
    bucket = fleet.spec.buckets[1]
    cloud.refuses[f"b/{bucket.name}"] = 403
    with pytest.raises(EnvironmentFailure, match="403"):
        checkpoints.delete(bucket, fleet.cluster("west"))
