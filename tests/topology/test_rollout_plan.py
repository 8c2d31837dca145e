"""The releases of each cluster of a fleet, their order, and the order of the clusters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder.api.problems import InvalidDocument
from spotladder_infra.rollout import charts, components
from spotladder_infra.rollout.plan import merge, plan, waves
from spotladder_infra.topology.fleet import Fleet
from tests.topology.builders import PLATFORM, fleet_file


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    return fleet_file(tmp_path_factory.mktemp("fleet")).fleet


@pytest.mark.parametrize(
    ("cluster", "crds", "releases"),
    [
        (
            "east",
            ["spotladder-crds", "karpenter-crd", "kuberay-operator"],
            ["karpenter", "gpu-device-plugin", "efa-device-plugin", "pools", "kuberay", "controller"],
        ),
        ("west", ["kuberay-operator"], ["pools", "kuberay", "controller"]),
        ("alpha", ["karpenter-crd", "kuberay-operator"], ["karpenter", "pools", "kuberay", "controller"]),
        ("lab", ["kuberay-operator"], ["pools", "kuberay", "controller"]),
        ("laptop", ["kuberay-operator"], ["pools", "kuberay", "controller"]),
    ],
)  # fmt: skip
def test_components_of_each_kind_of_cluster(fleet: Fleet, cluster: str, crds: list[str], releases: list[str]) -> None:
    found = plan(fleet, fleet.cluster(cluster))
    assert [chart.name for chart in found.crds] == crds
    assert [step.name for step in found.releases] == releases


def test_a_provided_kuberay_is_in_no_plan(tmp_path: Path) -> None:
    """Rollout, upgrade and destroy work on the releases of the plan only."""
    fleet = fleet_file(
        tmp_path, ("    context: lab-admin\n", "    context: lab-admin\n    provides: [kuberay]\n")
    ).fleet
    found = plan(fleet, fleet.cluster("lab"))
    assert [chart.name for chart in found.crds] == []
    assert [step.name for step in found.releases] == ["pools", "controller"]


def test_options_add_components_before_the_pools(tmp_path: Path) -> None:
    change = (PLATFORM, "  platform: {jobset: true, kueue: true, gpuDevicePlugin: true}\n")
    fleet = fleet_file(tmp_path, change).fleet
    found = plan(fleet, fleet.cluster("east"))
    names = [step.name for step in found.releases]
    plugins = ["gpu-device-plugin", "efa-device-plugin"]
    assert names == ["karpenter", "jobset", "kueue", *plugins, "pools", "kuberay", "controller"]
    assert "jobset" in [chart.name for chart in found.crds]
    for cluster in ("east", "lab"):
        assert plan(fleet, fleet.cluster(cluster)).releases[-1].values["rbac"] == {"kueue": True}


def plugins(fleet: Fleet, cluster: str) -> dict[str, Any]:
    """The values of the device plugins of a cluster."""
    steps = plan(fleet, fleet.cluster(cluster)).releases
    return {step.name: step.values for step in steps if step.name.endswith("-device-plugin")}


def nodes_of(values: dict[str, Any]) -> list[dict[str, list[str]]]:
    """The labels of the nodes on which NVIDIA's plugin runs, one entry for each alternative."""
    required = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return [
        {entry["key"]: entry["values"] for entry in term["matchExpressions"]} for term in required["nodeSelectorTerms"]
    ]


def test_each_device_plugin_runs_on_the_nodes_that_have_its_devices(fleet: Fleet) -> None:
    found = plugins(fleet, "east")
    gpu_pools = ["g5-spot", "g5-on-demand", "p5-reserved"]
    assert nodes_of(found["gpu-device-plugin"]) == [{"karpenter.sh/nodepool": [name]} for name in gpu_pools]
    efa = found["efa-device-plugin"]["supportedInstanceLabels"]
    assert efa == {"keys": ["karpenter.sh/nodepool"], "values": ["p5-reserved"]}
    assert [values["tolerations"] for values in found.values()] == [[{"operator": "Exists"}]] * 2
    for other in ("west", "alpha", "lab", "laptop"):
        assert plugins(fleet, other) == {}


def test_nvidias_plugin_finds_nodes_of_an_existing_cluster_by_the_labels_of_their_pool(tmp_path: Path) -> None:
    """The chart's own affinity wants labels of Node Feature Discovery."""
    pool = ("selectors: {gpu: a10g},", "selectors: {gpu: a10g}, accelerator: {type: nvidia-a10g},")
    changed = fleet_file(tmp_path, pool, (PLATFORM, "  platform: {gpuDevicePlugin: true}\n")).fleet
    assert nodes_of(plugins(changed, "lab")["gpu-device-plugin"]) == [{"gpu": ["a10g"]}]


def test_bottlerocket_has_nvidias_plugin(tmp_path: Path) -> None:
    image = "bottlerocket@v1.40.0"
    changes = [
        ("      limits: {nodes: 16}\n", f"      image: {image}\n"),
        ("{name: g5-on-demand,", f"{{name: g5-on-demand, image: {image},"),
    ]
    found = plugins(fleet_file(tmp_path, *changes).fleet, "east")
    assert nodes_of(found["gpu-device-plugin"]) == [{"karpenter.sh/nodepool": ["p5-reserved"]}]
    assert set(plugins(fleet_file(tmp_path, *changes, ("      efa: true\n", f"      image: {image}\n"),
                                  ).fleet, "east")) == set()  # fmt: skip


def test_trainium_and_inferentia_get_the_plugin_of_neuron(tmp_path: Path) -> None:
    pools = ("instanceTypes: [g5.xlarge], accelerator: {type: nvidia-a10g}}", "families: [trn1]}")
    found = plugins(fleet_file(tmp_path, pools).fleet, "east")
    assert found["neuron-device-plugin"]["npd"] == {"enabled": False}
    assert len(nodes_of(found["gpu-device-plugin"])) == 2


def test_karpenter_gets_its_cluster_and_queue(fleet: Fleet) -> None:
    east = plan(fleet, fleet.cluster("east")).releases[0].values
    assert east["settings"] == {"clusterName": "east", "interruptionQueue": "east-interruptions"}
    assert {"name": "AWS_REGION", "value": "us-east-1"} in east["controller"]["env"]
    alpha = plan(fleet, fleet.cluster("alpha")).releases[0].values
    assert alpha["controller"]["settings"]["projectID"] == "acme-ml"
    assert alpha["controller"]["featureGates"] == {"spotToSpotConsolidation": False}


def test_karpenter_without_internet_asks_for_no_prices(tmp_path: Path) -> None:
    network = "network: {cidr: 10.0.0.0/16"
    fleet = fleet_file(tmp_path, (network, f"{network}, nat: none, interfaceEndpoints: true")).fleet
    assert plan(fleet, fleet.cluster("east")).releases[0].values["settings"]["isolatedVPC"] is True


def test_controllers_run_on_the_system_nodes_of_created_clusters(tmp_path: Path) -> None:
    change = (PLATFORM, "  platform: {jobset: true, kueue: true, gpuDevicePlugin: true}\n")
    fleet = fleet_file(tmp_path, change).fleet
    found = {step.name: step.values for step in plan(fleet, fleet.cluster("east")).releases}
    tolerated = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    below = [found["jobset"]["controller"], found["kueue"]["controllerManager"]]
    placed = [found["karpenter"], *below, found["kuberay"], found["controller"]]
    assert [values["tolerations"] for values in placed] == [tolerated] * 5
    assert {values["nodeSelector"]["spotladder.io/pool"] for values in placed} == {"system"}
    assert found["gpu-device-plugin"]["tolerations"] == [{"operator": "Exists"}]
    lab = {step.name: step.values for step in plan(fleet, fleet.cluster("lab")).releases}
    assert lab["kuberay"] == {}


def test_values_of_the_file_win(tmp_path: Path) -> None:
    platform = (
        "{image: {repository: r/spotladder, tag: '2'}, values: {controller: {image: {tag: '3'}, replicaCount: 1}}}"
    )
    fleet = fleet_file(tmp_path, (PLATFORM, f"  platform: {platform}\n")).fleet
    values = plan(fleet, fleet.cluster("east")).releases[-1].values
    assert values["image"] == {"repository": "r/spotladder", "tag": "3"}
    assert values["replicaCount"] == 1
    assert merge({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}) == {"a": {"b": 1, "d": 2}, "c": [2]}


@pytest.mark.parametrize(
    ("canary", "targets", "expected"),
    [
        ("[]", (), [["east"], ["west", "alpha", "lab", "laptop"]]),
        ("[laptop, lab]", (), [["lab", "laptop"], ["east", "west", "alpha"]]),
        ("[]", ("lab",), [["lab"]]),
        ("[lab]", ("east", "lab"), [["lab"], ["east"]]),
    ],
)
def test_waves(tmp_path: Path, canary: str, targets: tuple[str, ...], expected: list[list[str]]) -> None:
    change = ("spec:\n  home", f"spec:\n  rollout: {{canary: {canary}}}\n  home")
    assert waves(fleet_file(tmp_path, change).fleet, targets) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rollout: {canary: [nowhere]}", "spec.rollout.canary[0]"),
        ("rollout: {concurrency: 0}", "spec.rollout.concurrency"),
        ("platform: {values: {kubray: {}}}", "is not a component"),
        ("platform: {image: {tag: a}}", "spec.platform.image.repository"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidDocument) as raised:
        fleet_file(tmp_path, (PLATFORM, f"  {text}\n"))
    assert message in str(raised.value)


def test_own_charts_have_the_pinned_version() -> None:
    for folder in charts.own_folder().iterdir():
        assert YAML(typ="safe").load(folder / "Chart.yaml")["version"] == components.OWN_VERSION, folder
