"""What `destroy` removes: from a created cluster everything, from an existing cluster only the fleet's own objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout.components import CONTROLLER, KUBERAY, Component
from spotladder_infra.rollout.release import HOST_LABEL
from spotladder_infra.rollout.remove import OUR_NODEPOOLS, release_nodes, uninstall
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import Cluster
from tests.topology.builders import fleet_file

FLEET_POOL = {"app.kubernetes.io/name": "spotladder-pools"}
FLEET_NODE = {"spotladder.io/pool": "g5-spot"}
OTHER: dict[str, str] = {"team": "web"}


class RemovalCluster(Tools):
    """NodePools, NodeClaims and Secrets by name with their labels. Karpenter ends the nodes of deleted NodePools."""

    def __init__(self) -> None:
        super().__init__(KubeContext("/nowhere", "lab"))
        objects: dict[str, dict[str, dict[str, str]]] = {
            "nodepools.karpenter.sh": {"g5-spot": FLEET_POOL, "web": OTHER},
            "nodeclaims.karpenter.sh": {"g5-spot-1": FLEET_NODE, "web-1": OTHER},
            "secrets": {},
        }
        object.__setattr__(self, "objects", objects)
        object.__setattr__(self, "commands", [])

    objects: dict[str, dict[str, dict[str, str]]]
    commands: list[tuple[str, ...]]

    def get(self, *arguments: str) -> Object | None:
        return (
            {} if arguments[0] == "crd" else {"items": [{"metadata": {"name": name}} for name in self._of(arguments)]}
        )

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        assert arguments[:2] == ("delete", "nodepools.karpenter.sh")
        for name in self._of(arguments[1:]):
            del self.objects["nodepools.karpenter.sh"][name]
            self.objects["nodeclaims.karpenter.sh"].pop(f"{name}-1")
        return ""

    def helm(self, *arguments: str, given: str | None = None) -> str:
        self.commands.append(arguments)
        return ""

    def _of(self, arguments: tuple[str, ...]) -> list[str]:
        """The names of the objects of a kind that the selector matches."""
        text = " ".join(arguments).replace("--selector=", "--selector ")
        selector = text.partition("--selector ")[2].partition(" ")[0]
        wanted = [pair.partition("=") for pair in selector.split(",") if pair]
        return [
            name
            for name, labels in self.objects[arguments[0]].items()
            if all(key in labels and value in ("", labels[key]) for key, _, value in wanted)
        ]


def cluster(folder: Path, name: str) -> Cluster:
    return fleet_file(folder).fleet.cluster(name)


@pytest.mark.parametrize(
    ("name", "pools", "claims"),
    [("east", set(), set()), ("alpha", set(), set()), ("lab", {"web"}, {"web-1"}), ("laptop", {"web"}, {"web-1"})],
)
def test_nodepools_of_others_stay_in_a_cluster_that_was_not_created_here(
    name: str, pools: set[str], claims: set[str], tmp_path: Path
) -> None:
    tools, reports = RemovalCluster(), list[tuple[str, str, str]]()
    release_nodes(tools, cluster(tmp_path, name), 0, lambda *report: reports.append(report))
    assert set(tools.objects["nodepools.karpenter.sh"]) == pools
    assert set(tools.objects["nodeclaims.karpenter.sh"]) == claims
    assert reports == [("nodes", "released", "")]


def test_nodes_of_the_fleet_that_stay_are_named(tmp_path: Path) -> None:
    """A repeated command no longer finds a NodePool: the label of the NodeClaims names their owner."""
    tools = RemovalCluster()
    del tools.objects["nodepools.karpenter.sh"]["g5-spot"]
    with pytest.raises(EnvironmentFailure, match=r"1 NodeClaims still exist after 0 s: g5-spot-1 \(node none\)"):
        release_nodes(tools, cluster(tmp_path, "lab"), 0, lambda *_: None)


@pytest.mark.parametrize(
    ("name", "component", "labels", "result"),
    [
        ("lab", KUBERAY, {}, "kept"),
        ("lab", KUBERAY, {HOST_LABEL: "1"}, "removed"),
        ("lab", CONTROLLER, {}, "removed"),
        ("east", KUBERAY, {}, "removed"),
    ],
)
def test_releases_of_others_stay_in_a_cluster_that_was_not_created_here(
    name: str, component: Component, labels: dict[str, str], result: str, tmp_path: Path
) -> None:
    tools, reports = RemovalCluster(), list[tuple[str, str, str]]()
    tools.objects["secrets"]["sh.helm.release.v1.x.v1"] = {"owner": "helm", "name": component.release, **labels}
    uninstall(tools, cluster(tmp_path, name), component, lambda *report: reports.append(report))
    assert reports[-1][:2] == (component.release, result)
    removed = [arguments[:2] for arguments in tools.commands]
    assert removed == ([("uninstall", component.release)] if result == "removed" else [])


def test_the_selector_is_the_label_of_the_chart() -> None:
    """tests/charts/test_pools.py finds this label on every object of the chart."""
    assert OUR_NODEPOOLS == "app.kubernetes.io/name=spotladder-pools"
