"""The rollout takes the identities of a created cluster from the outputs of its stack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra import access
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import charts
from spotladder_infra.rollout.charts import LocalChart
from spotladder_infra.rollout.cluster_rollout import ClusterPlatform, RolloutSite
from spotladder_infra.terraform.applied import path_of
from spotladder_infra.topology.fleet import Fleet
from tests.infra.contract import alpha, east
from tests.topology.builders import fleet_file


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return fleet_file(tmp_path).fleet


def releases(
    fleet: Fleet, folder: Path, outputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> dict[str, dict[str, Any]]:
    """The values of the releases of a cluster whose stack has these outputs, by component."""
    name = str(outputs["cluster"])
    path = path_of(name, folder)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(outputs))
    monkeypatch.setattr(access, "target", lambda *_: KubeContext("kubeconfig", name))
    monkeypatch.setattr(charts, "find", lambda chart, *_: LocalChart(str(folder), chart.version, "digest"))
    desired, _ = ClusterPlatform(RolloutSite(fleet, folder, folder), fleet.cluster(name)).desired()
    return {entry.resource: json.loads(entry.values) for entry in desired.releases}


def test_a_rollout_to_eks_uses_the_outputs_of_the_stack(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = releases(fleet, tmp_path, east(), monkeypatch)
    assert found["karpenter"]["settings"]["interruptionQueue"] == "queue-of-the-stack"
    profiles = {entry["spec"]["instanceProfile"] for entry in found["pools"]["nodeClasses"]}
    assert profiles == {"node-profile-of-the-stack"}


def test_a_rollout_to_gke_uses_the_outputs_of_the_stack(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = releases(fleet, tmp_path, alpha(), monkeypatch)
    annotations = found["karpenter"]["serviceAccount"]["annotations"]
    assert annotations == {"iam.gke.io/gcp-service-account": "karpenter@stack"}
    assert {entry["spec"]["serviceAccount"] for entry in found["pools"]["nodeClasses"]} == {"node@stack"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"region": "eu-west-1"}, "region: expected us-east-1, got eu-west-1"),
        ({"fleet": "other"}, "fleet: expected training, got other"),
        ({"interruptionQueue": None}, "interruptionQueue: is missing"),
    ],
)
def test_invalid_outputs_stop_the_rollout(
    changes: dict[str, Any], problem: str, fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(EnvironmentFailure) as raised:
        releases(fleet, tmp_path, east(**changes), monkeypatch)
    assert str(raised.value).startswith(f"outputs of cluster east: {problem}")
    assert str(raised.value).endswith("run spotladder infra bootstrap --cluster east with this release")
