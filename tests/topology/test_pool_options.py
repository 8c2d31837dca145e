"""Options of pools, rendered in NodePools, node classes and ComputeClasses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spotladder_infra.rendering.labels import tolerations
from spotladder_infra.rendering.tiers import capacity_tiers
from spotladder_infra.rendering.values import values
from tests.topology.builders import fleet_file

SPOT = "      limits: {nodes: 16}"


def made(folder: Path, cluster: str, *changes: tuple[str, str]) -> dict[str, Any]:
    fleet = fleet_file(folder, *changes).fleet
    found = values(fleet, fleet.cluster(cluster))
    assert isinstance(found, dict)
    return found


def spec(found: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    (entry,) = [entry for entry in found[key] if entry["metadata"]["name"] == name]
    assert isinstance(entry["spec"], dict)
    return entry["spec"]


@pytest.mark.parametrize(
    ("option", "parallel", "throughput"),
    [
        ("", "FastImagePull: true", 600),
        ("diskThroughput: 1000", "FastImagePull: true", 1000),
        ("diskThroughput: 599", "", 599),
        ("image: bottlerocket@v1.50.0", 'pull-mode = "parallel-pull-unpack"', 600),
    ],
)
def test_images_are_pulled_in_parallel_from_a_fast_disk(
    option: str, parallel: str, throughput: int, tmp_path: Path
) -> None:
    found = spec(made(tmp_path, "east", (SPOT, f"{SPOT}\n      {option}")), "nodeClasses", "g5-spot")
    (mapping,) = found["blockDeviceMappings"]
    assert mapping["ebs"]["throughput"] == throughput
    assert mapping["ebs"]["iops"] == (4000 if throughput == 1000 else 3000)
    assert mapping["deviceName"] == ("/dev/xvdb" if "bottlerocket" in option else "/dev/xvda")
    assert parallel in found.get("userData", "")
    assert bool(parallel) == ("userData" in found)


@pytest.mark.parametrize(
    ("machine", "topology", "kind", "count"),
    [
        ("ct5lp-hightpu-8t", "2x4", "tpu-v5-lite-podslice", 8),
        ("ct5lp-hightpu-4t", "2x4", "tpu-v5-lite-podslice", 4),  # two nodes
        ("ct5p-hightpu-4t", "2x2x4", "tpu-v5p-slice", 4),
        ("ct6e-standard-1t", "1x1", "tpu-v6e-slice", 1),
    ],
)
def test_gke_gets_the_slice_of_a_pool_with_tpus(
    machine: str, topology: str, kind: str, count: int, tmp_path: Path
) -> None:
    pool = "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}"
    change = (pool, f"instanceTypes: [{machine}]\n      tpuTopology: {topology}")
    (rule,) = spec(made(tmp_path, "west", change), "computeClasses", "l4-spot")["priorities"]
    assert rule["tpu"] == {"type": kind, "count": count, "topology": topology}
    assert rule["spot"]
    assert not {"gpu", "machineType"} & set(rule)
    fleet = fleet_file(tmp_path, change).fleet
    (tier,) = [tier["spec"] for tier in capacity_tiers(fleet) if tier["metadata"]["name"] == "l4-spot"]
    assert tier["extraSelectors"] == {
        "cloud.google.com/compute-class": "l4-spot",
        "cloud.google.com/gke-tpu-accelerator": kind,
        "cloud.google.com/gke-tpu-topology": topology,
    }
    assert {entry["key"] for entry in tier["extraTolerations"]} == {"cloud.google.com/compute-class", "google.com/tpu"}


@pytest.mark.parametrize(
    ("machines", "accelerator", "expected"),
    [
        ("g2-standard-8", "", ("nvidia-l4", 1)),
        ("a2-highgpu-8g", "accelerator: {type: nvidia-tesla-a100}", ("nvidia-tesla-a100", 8)),
        ("a2-ultragpu-2g", "accelerator: {type: nvidia-a100-80gb, count: 2}", ("nvidia-a100-80gb", 2)),
        ("n1-standard-8", "accelerator: {type: nvidia-tesla-t4, count: 4}", ("nvidia-tesla-t4", 4)),
        ("n2-standard-8", "", None),
    ],
)
def test_gke_gets_the_accelerators_of_the_machine_type(
    machines: str, accelerator: str, expected: tuple[str, int] | None, tmp_path: Path
) -> None:
    """GKE creates no node for a GPU machine type without them, and taints the nodes that have them."""
    pool = "instanceTypes: [g2-standard-8]\n      accelerator: {type: nvidia-l4}"
    found = made(tmp_path, "west", (pool, f"instanceTypes: [{machines}]\n      {accelerator}"))
    (rule,) = spec(found, "computeClasses", "l4-spot")["priorities"]
    assert rule.get("gpu") == (None if expected is None else {"type": expected[0], "count": expected[1]})
    fleet = fleet_file(tmp_path, (pool, f"instanceTypes: [{machines}]\n      {accelerator}")).fleet
    west = fleet.cluster("west")
    tolerated = {entry["key"] for entry in tolerations(west, west.pools[1])}
    assert ("nvidia.com/gpu" in tolerated) == (expected is not None)


@pytest.mark.parametrize(
    ("instance", "cards"),
    [("p5.48xlarge", 32), ("p4d.24xlarge", 4), ("g6.8xlarge", 1), ("p5.48xlarge, p5en.48xlarge", 16)],
)
def test_efa_is_on_every_network_card(instance: str, cards: int, tmp_path: Path) -> None:
    found = made(tmp_path, "east", ("instanceTypes: [p5.48xlarge]", f"instanceTypes: [{instance}]"))
    primary, *efa = spec(found, "nodeClasses", "p5-reserved")["networkInterfaces"]
    assert primary == {"networkCardIndex": 0, "deviceIndex": 0, "interfaceType": "interface"}
    assert [entry["networkCardIndex"] for entry in efa] == list(range(cards))
    assert {entry["interfaceType"] for entry in efa} == {"efa-only"}
    places = {(entry["networkCardIndex"], entry["deviceIndex"]) for entry in (primary, *efa)}
    assert len(places) == cards + 1


@pytest.mark.parametrize(
    ("reservation", "terms"),
    [
        ("{capacityBlocks: [cr-1]}", [{"id": "cr-1"}]),
        ("{ids: [cr-1, cr-2]}", [{"id": "cr-1"}, {"id": "cr-2"}]),
        ("{tags: {team: vision}}", [{"tags": {"team": "vision"}}]),
    ],
)
def test_reserved_capacity_is_chosen_by_id_or_tag(
    reservation: str, terms: list[dict[str, Any]], tmp_path: Path
) -> None:
    found = made(tmp_path, "east", ("{capacityBlocks: [cr-0123456789abcdef0]}", reservation))
    assert spec(found, "nodeClasses", "p5-reserved")["capacityReservationSelectorTerms"] == terms
    requirements = spec(found, "nodePools", "p5-reserved")["template"]["spec"]["requirements"]
    assert {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]} in requirements


def test_container_images_come_from_a_second_boot_disk(tmp_path: Path) -> None:
    disk = "secondaryBootDisk: projects/acme-ml/global/images/train-1"
    found = made(tmp_path, "west", ("{name: l4-on-demand, ", f"{{name: l4-on-demand, {disk}, "))
    (rule,) = spec(found, "computeClasses", "l4-on-demand")["priorities"]
    assert rule["storage"]["secondaryBootDisks"] == [
        {"diskImageName": "train-1", "project": "acme-ml", "mode": "CONTAINER_IMAGE_CACHE"}
    ]
    found = made(tmp_path, "alpha", ("{name: n2-spot, ", f"{{name: n2-spot, {disk}, "))
    _, second = spec(found, "nodeClasses", "n2-spot")["disks"]
    assert second == {
        "secondaryBootImage": "projects/acme-ml/global/images/train-1",
        "secondaryBootMode": "CONTAINER_IMAGE_CACHE",
    }


def test_startup_taints_and_the_grace_of_a_node(tmp_path: Path) -> None:
    options = (
        f"{SPOT}\n      startupTaints: [{{key: example.com/starting}}]"
        "\n      disruption: {terminationGracePeriod: 120s, consolidateAfter: 1h, expireAfter: 720h}"
    )
    found = spec(made(tmp_path, "east", (SPOT, options)), "nodePools", "g5-spot")
    template = found["template"]["spec"]
    assert template["startupTaints"] == [{"key": "example.com/starting", "effect": "NoSchedule"}]
    assert template["terminationGracePeriod"] == "2m"
    assert template["expireAfter"] == "720h"
    assert found["disruption"]["consolidateAfter"] == "1h"


def test_images_are_pulled_before_they_are_needed_also_while_a_node_starts(tmp_path: Path) -> None:
    options = f"{SPOT}\n      prePull: [a/b:1, a/b:1]\n      startupTaints: [{{key: example.com/starting, value: x}}]"
    (pull,) = made(tmp_path, "east", (SPOT, options))["prePull"]
    assert (pull["pool"], pull["images"]) == ("g5-spot", ["a/b:1"])
    assert pull["nodeSelector"] == {"karpenter.sh/nodepool": "g5-spot"}
    keys = [(entry["key"], entry["operator"]) for entry in pull["tolerations"]]
    assert keys == [("spotladder.io/pool", "Equal"), ("nvidia.com/gpu", "Exists"), ("example.com/starting", "Equal")]


def test_a_node_class_that_exists_gets_a_node_pool(tmp_path: Path) -> None:
    node_class = "nodeClass: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, instanceTypes: [m.medium]"
    changes = ("selectors: {gpu: a10g}", node_class), ("home: east", "home: lab")
    found = made(tmp_path, "lab", *changes)
    assert (found["nodeClasses"], found["computeClasses"]) == ([], [])
    (pool,) = found["nodePools"]
    template = pool["spec"]["template"]["spec"]
    assert template["nodeClassRef"] == {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    assert template["taints"] == [{"key": "spotladder.io/pool", "value": "lab-gpu", "effect": "NoSchedule"}]
    assert [entry["key"] for entry in template["requirements"]] == [
        "karpenter.sh/capacity-type",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "node.kubernetes.io/instance-type",
    ]
    tier = spec(found, "capacityTiers", "lab-gpu")
    assert tier["extraSelectors"] == {"karpenter.sh/nodepool": "lab-gpu"}
    assert tier["extraTolerations"] == [
        {"key": "spotladder.io/pool", "operator": "Equal", "value": "lab-gpu", "effect": "NoSchedule"}
    ]
    assert tier["headSelectors"] == {"role": "system"}
