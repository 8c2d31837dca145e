"""The reports of installed components, and of a cluster's failure."""

from __future__ import annotations

from typing import Any

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import crds, good_rollouts, inspection
from spotladder_infra.rollout.cluster_rollout import Desired
from spotladder_infra.rollout.good_rollouts import Good
from spotladder_infra.rollout.tools import Tools

CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: rayjobs.ray.io\n"
CHART = "kuberay-operator"


@pytest.mark.parametrize(
    ("drift", "recorded", "installed"),
    [
        ([], None, "1.6.1"),
        ([], "1.5.0", "1.6.1"),
        (["CustomResourceDefinition/rayjobs.ray.io"], "1.5.0", "1.5.0"),
        (["CustomResourceDefinition/rayjobs.ray.io"], None, "–"),
    ],
)
def test_the_installed_version_of_crds(
    drift: list[str], recorded: str | None, installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CRDs that equal those of the chart have its version; others have that of the last good rollout."""
    goods = [Good("2026-11-22", smoke=False, releases=(), crds=((CHART, recorded, "d"),))] if recorded else []
    monkeypatch.setattr(good_rollouts, "read", lambda _: goods)
    monkeypatch.setattr(inspection, "releases", lambda _: {})
    monkeypatch.setattr(crds, "of_chart", lambda *_: [CRD])
    monkeypatch.setattr(crds, "drift", lambda *_: drift)

    class Platform:
        cluster = type("Named", (), {"name": "lab"})
        tools = Tools(KubeContext("/nowhere", "lab"))

        def desired(self) -> tuple[Desired, dict[str, str]]:
            return Desired(((CHART, "1.6.1", "d"),), ()), {CHART: "/chart"}

    platform: Any = Platform()
    (row,) = inspection.inspect(platform, compare=True)
    assert (row.wanted, row.version, list(row.drift)) == ("1.6.1", installed, drift)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("kubectl get: refused", "cluster east: kubectl get: refused"),
        ("cluster east: it is locked", "cluster east: it is locked"),
        ("cluster east has no good rollout yet", "cluster east has no good rollout yet"),
        ("cluster east-2: it is locked", "cluster east: cluster east-2: it is locked"),
    ],
)
def test_a_failure_names_its_cluster_once(message: str, line: str) -> None:
    assert inspection.failure_of("east", message) == line


def test_clusters_are_inspected_although_one_cannot_be_read() -> None:
    def rows(name: str) -> list[str]:
        if name == "west":
            raise EnvironmentFailure("no answer")
        return [f"{name} 1", f"{name} 2"]

    found = inspection.inspect_all(["east", "west", "north"], 2, rows)
    assert found == (["east 1", "east 2", "north 1", "north 2"], ["cluster west: no answer"])
