"""The images of the pools in the fleet file and in the cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder_infra.facts.images import NODE_IMAGE
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout.images import PoolImage, pool_images
from spotladder_infra.rollout.tools import Object, Tools
from tests.topology.builders import fleet_file


class Karpenter(Tools):
    """A cluster with node classes."""

    def __init__(self, classes: dict[str, str]) -> None:
        super().__init__(KubeContext("/nowhere", "east"))
        object.__setattr__(self, "classes", classes)

    classes: dict[str, str]

    def items(self, *arguments: str) -> list[Object]:
        field = {
            "ec2nodeclasses.karpenter.k8s.aws": "amiSelectorTerms",
            "gcenodeclasses.karpenter.k8s.gcp": "imageSelectorTerms",
        }[arguments[0]]
        return [
            {"metadata": {"name": name}, "spec": {field: [{"alias": image}]}} for name, image in self.classes.items()
        ]


def images(tmp_path: Path, cluster: str, tools: Tools, *changes: tuple[str, str]) -> dict[str, PoolImage]:
    found = pool_images(tools, fleet_file(tmp_path, *changes).fleet.cluster(cluster))
    return {image.pool: image for image in found}


def test_the_pinned_and_the_installed_image_of_a_pool(tmp_path: Path) -> None:
    pinned = ("{name: g5-on-demand,", "{name: g5-on-demand, image: al2023@v20260801,")
    found = images(tmp_path, "east", Karpenter({"g5-on-demand": "al2023@v20260701"}), pinned)
    assert found["g5-on-demand"] == PoolImage("g5-on-demand", "al2023@v20260801", "al2023@v20260701")
    other = {image for pool, image in found.items() if pool != "g5-on-demand"}
    assert {(image.pinned, image.installed) for image in other} == {(NODE_IMAGE, "")}


def test_an_image_of_google(tmp_path: Path) -> None:
    found = images(tmp_path, "alpha", Karpenter({"n2-spot": "ContainerOptimizedOS@latest"}))["n2-spot"]
    assert found == PoolImage("n2-spot", "ContainerOptimizedOS@latest", "ContainerOptimizedOS@latest")


@pytest.mark.parametrize("cluster", ["west", "lab", "laptop"])
def test_other_nodes_have_no_image_of_ours(cluster: str, tmp_path: Path) -> None:
    assert images(tmp_path, cluster, Tools(KubeContext("/nowhere", cluster))) == {}
