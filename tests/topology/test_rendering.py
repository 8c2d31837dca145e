"""Rendered pools: golden values of the chart, and the rules between pools, tiers and nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spotladder.api.capacitytier import CapacityTier
from spotladder.workloads.providers import head_placement, placement
from spotladder_infra.rendering.tiers import capacity_tiers
from spotladder_infra.rendering.values import values
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.pool import PoolRole
from tests.golden import check
from tests.topology.builders import fleet_file
from tests.topology.differences import differences, lines

IN_CLOUDS = ("east", "west", "alpha")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return fleet_file(tmp_path_factory.mktemp("fleet")).fleet


@pytest.mark.parametrize("name", IN_CLOUDS)
def test_golden(name: str, fleet: Fleet) -> None:
    check(f"topology/golden/{name}.txt", rendered(fleet, name))


def test_every_pool_of_workers_is_a_tier(fleet: Fleet) -> None:
    pools = [pool for cluster in fleet.spec.clusters for pool in cluster.pools if pool.role is PoolRole.WORKERS]
    tiers = [CapacityTier.model_validate(tier) for tier in capacity_tiers(fleet)]
    assert [tier.metadata.name for tier in tiers] == [pool.name for pool in pools]
    assert [tier.spec.capacity_type for tier in tiers] == [pool.capacity_type for pool in pools]


@pytest.mark.parametrize(
    ("heads", "per_hour"),
    [
        ('families: [m7i], price: {perNodeHour: "0.25"}', 0.25),
        ("instanceTypes: [m7i.xlarge]", 0.2016),
        ("families: [m7i]", None),
    ],
)
def test_the_price_of_a_head_is_that_of_the_head_pool(tmp_path: Path, heads: str, per_hour: float | None) -> None:
    file = fleet_file(tmp_path, ("role: heads, families: [m7i]", f"role: heads, {heads}"))
    found = {tier["metadata"]["name"]: CapacityTier.model_validate(tier).spec for tier in capacity_tiers(file.fleet)}
    price = found["g5-spot"].price
    assert price is not None
    assert price.head_per_hour == per_hour


def test_the_annotation_of_a_team_has_the_whole_budget(tmp_path: Path) -> None:
    fleet = fleet_file(tmp_path, ("budget: 5000", "budget: 1234567.5")).fleet
    team = values(fleet, fleet.cluster("east"))["teams"][0]
    assert team["annotations"] == {"spotladder.io/monthly-budget-usd": "1234567.5"}


def test_pods_of_a_tier_fit_its_nodes_and_no_others(fleet: Fleet) -> None:
    """A pod's selectors and tolerations, as the controller sets them, compared with the nodes of every NodePool."""
    cluster = fleet.cluster("east")
    pools = {pool["metadata"]["name"]: pool["spec"]["template"] for pool in values(fleet, cluster)["nodePools"]}
    for tier in capacity_tiers(fleet):
        spec = CapacityTier.model_validate(tier).spec
        if spec.cluster != "home":
            continue
        pod = placement(spec)
        fitting = [name for name, template in pools.items() if _fits(pod, name, template)]
        assert fitting == [tier["metadata"]["name"]]
        head = head_placement(spec)
        assert [name for name, template in pools.items() if _fits(head, name, template)] == ["east-heads"]


def rendered(fleet: Fleet, cluster: str) -> str:
    """The values of the chart. Of each list of objects, all but the first are written as differences from it."""
    made = values(fleet, fleet.cluster(cluster))
    for node_class in made.get("nodeClasses", ()):
        if "networkInterfaces" in node_class["spec"]:
            node_class["spec"]["networkInterfaces"] = "see test_pool_options.py"
    return lines({key: _compact(objects) for key, objects in made.items() if objects})


def _compact(objects: Any) -> Any:
    if not isinstance(objects, list) or not isinstance(objects[0], dict):
        return objects
    return [objects[0], *(differences(objects[0], other) for other in objects[1:])]


def _fits(pod: Any, name: str, template: dict[str, Any]) -> bool:
    """Whether the scheduler and Karpenter would put the pod on a node of that NodePool."""
    required = {entry["key"]: entry["values"] for entry in template["spec"]["requirements"]}
    labels = {**{key: [value] for key, value in template["metadata"]["labels"].items()}, **required}
    labels["karpenter.sh/nodepool"] = [name]
    selected = all(value in labels.get(key, [value]) for key, value in pod.labels)
    possible = all(set(allowed) & set(labels.get(key, allowed)) for key, allowed in pod.one_of)
    excluded = any(set(labels.get(key, [])) <= set(refused) and key in labels for key, refused in pod.none_of)
    tolerated = {(entry["key"], entry.get("value", "")) for entry in pod.tolerations}
    tainted = all((taint["key"], taint["value"]) in tolerated for taint in template["spec"].get("taints", []))
    return selected and possible and not excluded and tainted


AKS = """\
    context: aks
    provider: azure
    region: westeurope
    serviceAccountAnnotations: {team-a: {azure.workload.identity/client-id: 0a1b}}
"""
NAP = (
    "nodeClass: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}, "
    "instanceTypes: [Standard_NC24ads_A100_v4]"
)


@pytest.mark.parametrize(
    ("nodes", "labels"),
    [
        ("selectors: {agentpool: spotgpu}", {"kubernetes.azure.com/scalesetpriority": "spot", "agentpool": "spotgpu"}),
        (NAP, {"karpenter.sh/capacity-type": "spot", "karpenter.sh/nodepool": "lab-gpu"}),
    ],
    ids=["node pool", "node auto-provisioning"],
)
def test_an_existing_aks_cluster_is_a_tier(nodes: str, labels: dict[str, str], tmp_path: Path) -> None:
    changes = (("    context: lab-admin\n", AKS), ("selectors: {gpu: a10g}", f"capacityType: spot, {nodes}"))
    fleet = fleet_file(tmp_path, *changes).fleet
    document = next(tier for tier in capacity_tiers(fleet) if tier["metadata"]["name"] == "lab-gpu")
    tier = CapacityTier.model_validate(document).spec
    assert (tier.provider, tier.region, tier.notice) == ("azure", "westeurope", 30.0)
    found = placement(tier)
    assert dict(found.labels) == labels
    tolerated = {
        "key": "kubernetes.azure.com/scalesetpriority",
        "operator": "Equal",
        "value": "spot",
        "effect": "NoSchedule",
    }
    assert tolerated in found.tolerations
    (team, *_) = values(fleet, fleet.cluster("lab"))["teams"]
    assert team["serviceAccount"]["annotations"] == {"azure.workload.identity/client-id": "0a1b"}
