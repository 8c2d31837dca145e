"""The kind cluster, with a fake kind: its configuration, and errors for missing programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from spotladder.api.capacitytier import CapacityTier
from spotladder.workloads import providers
from spotladder_infra.kind import configuration
from spotladder_infra.rendering.controller import controller_values
from spotladder_infra.rendering.values import values
from spotladder_infra.topology.read import read_fleet
from tests.topology.programs import program

ROOT = Path(__file__).parents[2]
KIND = ROOT / "infra" / "kind"
FLEET = ROOT / "examples" / "fleet" / "kind.yaml"
TOOLS = ("docker", "kind", "kubectl", "helm", "pulumi")
FIELDS = {"kind", "apiVersion", "name", "nodes"}
NODE_FIELDS = {"role", "labels"}


def cluster() -> dict[str, Any]:
    (only,) = read_fleet(FLEET, date(2026, 11, 22)).fleet.spec.clusters
    return configuration(only)


def tiers() -> list[CapacityTier]:
    fleet = read_fleet(FLEET, date(2026, 11, 22)).fleet
    (only,) = fleet.spec.clusters
    return [CapacityTier.model_validate(tier) for tier in values(fleet, only)["capacityTiers"]]


def test_the_configuration_fits_the_schema_of_kind() -> None:
    found = cluster()
    assert set(found) <= FIELDS
    assert (found["kind"], found["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert all(set(node) <= NODE_FIELDS for node in found["nodes"])
    assert [node["role"] for node in found["nodes"]].count("control-plane") == 1


def test_every_tier_selects_its_own_nodes() -> None:
    labels = [node.get("labels", {}) for node in cluster()["nodes"]]
    (only,) = read_fleet(FLEET, date(2026, 11, 22)).fleet.spec.clusters
    limits = {pool.name: pool.limits.nodes for pool in only.pools}
    taken: list[int] = []
    for tier in tiers():
        wanted = dict(providers.placement(tier.spec).labels)
        found = [index for index, node in enumerate(labels) if wanted.items() <= node.items()]
        assert len(found) == limits[tier.metadata.name]
        assert any(tier.spec.head_selectors.items() <= node.items() for node in labels)
        taken += found
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize("missing", [("kind",), ("docker", "kind"), ("helm", "pulumi")])
def test_missing_programs_are_named(missing: tuple[str, ...], tmp_path: Path) -> None:
    for tool in set(TOOLS) - set(missing):
        program(tmp_path, tool, "exit 0")
    for tool in ("sh", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    answer = subprocess.run(
        [KIND / "up"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=600
    )
    assert answer.returncode == 5
    assert answer.stderr.startswith(f"error: kind-up needs {' '.join(missing)}: ")
    assert len(answer.stderr.splitlines()) == 1


def test_docker_that_does_not_run_is_named(tmp_path: Path) -> None:
    for name in TOOLS:
        program(tmp_path, name, f"exit {int(name == 'docker')}")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run([KIND / "up"], env={"PATH": path}, capture_output=True, text=True, check=False, timeout=600)
    assert (answer.returncode, answer.stdout) == (5, "")
    assert "needs a running Docker" in answer.stderr


@pytest.mark.parametrize("charts", ["", "/mirror"])
def test_kind_up_creates_the_cluster_and_rolls_out(charts: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for name in (*TOOLS, "spotladder"):
        program(tmp_path, name, f'echo "{name} $*" >> {log}')
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "SPOTLADDER": "spotladder", **({"CHARTS": charts} if charts else {})}
    subprocess.run([KIND / "up"], env=environment, check=True, capture_output=True, timeout=600)
    steps = log.read_text().splitlines()
    order = [
        f"spotladder infra bootstrap --fleet {FLEET}",
        "docker build",
        "kind load docker-image",
        f"spotladder infra rollout --fleet {FLEET}",
        "kubectl --context kind-spotladder --namespace spotladder-system rollout restart",
    ]
    places = [next(index for index, line in enumerate(steps) if line.startswith(step)) for step in order]
    assert places == sorted(places)
    assert ("--charts /mirror" in steps[places[3]]) == bool(charts)


def test_the_rollout_installs_the_image_that_was_loaded() -> None:
    fleet = read_fleet(FLEET, date(2026, 11, 22)).fleet
    image = controller_values(fleet, fleet.spec.clusters[0])["image"]
    script = (KIND / "up").read_text(encoding="utf-8")
    assert f"kind load docker-image --name spotladder {image['repository']}:{image['tag']}" in script
