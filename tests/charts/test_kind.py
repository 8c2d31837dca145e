"""The cluster for laptops. kind itself is not asked: what it is given is of its shape, and what is missing is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from spotladder.api.capacitytier import CapacityTier
from spotladder.api.check import checked
from spotladder.api.read import read_documents
from spotladder.workloads import providers

ROOT = Path(__file__).parents[2]
KIND = ROOT / "infra" / "kind"
FIELDS = {"kind", "apiVersion", "name", "nodes"}
NODE_FIELDS = {"role", "labels"}


def cluster() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load((KIND / "cluster.yaml").read_text())
    return found


def tiers() -> list[CapacityTier]:
    return [checked(document, CapacityTier) for document in read_documents(KIND / "capacity.yaml")]


def test_the_cluster_is_of_kinds_shape() -> None:
    found = cluster()
    assert set(found) <= FIELDS
    assert (found["kind"], found["apiVersion"]) == ("Cluster", "kind.x-k8s.io/v1alpha4")
    assert all(set(node) <= NODE_FIELDS for node in found["nodes"])
    assert [node["role"] for node in found["nodes"]].count("control-plane") == 1


def test_every_tier_has_as_many_nodes_as_it_says_and_none_of_anothers() -> None:
    labels = [node.get("labels", {}) for node in cluster()["nodes"]]
    taken: list[int] = []
    for tier in tiers():
        wanted = dict(providers.placement(tier.spec).labels)
        found = [index for index, node in enumerate(labels) if wanted.items() <= node.items()]
        assert len(found) == tier.spec.limits.nodes
        assert any(tier.spec.head_selectors.items() <= node.items() for node in labels)
        taken += found
    assert len(taken) == len(set(taken))


@pytest.mark.parametrize("missing", [("kind",), ("docker", "kind"), ("helm",)])
def test_what_is_missing_is_named(missing: tuple[str, ...], tmp_path: Path) -> None:
    for tool in {"docker", "kind", "kubectl", "helm"} - set(missing):
        (tmp_path / tool).write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / tool).chmod(0o755)
    for tool in ("sh", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    answer = subprocess.run(
        [KIND / "up"], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=30
    )
    assert answer.returncode == 5
    assert answer.stderr.startswith(f"error: kind-up needs {' '.join(missing)}: ")
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize(("tool", "said"), [("docker", "needs a running Docker"), ("helm", "there is no chart")])
def test_what_does_not_work_is_named(tool: str, said: str, tmp_path: Path) -> None:
    for name in ("docker", "kind", "kubectl", "helm"):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {int(name == tool)}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    answer = subprocess.run([KIND / "up"], env={"PATH": path}, capture_output=True, text=True, check=False, timeout=30)
    assert (answer.returncode, answer.stdout) == (5, "")
    assert said in answer.stderr


def test_the_steps_come_in_their_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for name in ("docker", "kind", "kubectl", "helm"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n')
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([KIND / "up"], env={"PATH": path}, check=True, capture_output=True, timeout=30)
    steps = [re.sub(r"--kube-context \S+ ", "", line) for line in log.read_text().splitlines()]
    order = [
        "kind create cluster",
        "docker build",
        "kind load docker-image",
        "helm upgrade --install kuberay-operator",
        "helm upgrade --install spotladder-crds",
        "helm upgrade --install spotladder ",
        "kubectl --context",
    ]
    places = [next(index for index, line in enumerate(steps) if line.startswith(step)) for step in order]
    assert places == sorted(places)
