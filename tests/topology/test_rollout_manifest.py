"""Splitting Helm's rendered manifests into objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout import manifest
from spotladder_infra.rollout.ready import AppsObject, workloads
from spotladder_infra.rollout.tools import Tools
from tests.topology.programs import program

RENDERED = """\
---
# Source: chart/crds/a.yaml
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    name: not-this
  name: as.example.com
spec:
  names:
    kind: A
  name: nor-this
--- # comment
apiVersion: apps/v1
kind: Deployment
metadata: {name: controller}
---
kind: "DaemonSet"
metadata: {name: plugin, namespace: kube-system}
---
# nothing
"""


def test_objects_are_found_by_kind() -> None:
    assert [kind for kind, _ in manifest.split(RENDERED)] == ["CustomResourceDefinition", "Deployment", "DaemonSet"]
    assert workloads(RENDERED, "system") == [
        AppsObject("Deployment", "system", "controller"),
        AppsObject("DaemonSet", "kube-system", "plugin"),
    ]
    assert list(manifest.split(manifest.joined(text for _, text in manifest.split(RENDERED)))) == list(
        manifest.split(RENDERED)
    )


def test_objects_with_and_without_a_namespace_are_separated() -> None:
    named, unnamed = manifest.by_namespace(RENDERED)
    assert ["DaemonSet" in text for text in named] == [True]
    assert len(unnamed) == 2
    block = "kind: A\nmetadata:\n  name: x\n  namespace: y\nspec: {}"
    labelled = "kind: A\nmetadata:\n  name: x\n  labels:\n    namespace: y\nspec: {namespace: z}"
    assert manifest.by_namespace(f"{block}\n---\n{labelled}") == ([block], [labelled])


def test_drift_is_compared_under_a_manager_that_is_not_helms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under Helm's own, the label and annotations that Helm adds count as removed: every object would differ."""
    answer = "Files /tmp/LIVE-1/apps.v1.DaemonSet.kube-system.plugin and /tmp/MERGED-1/x differ"
    script = f'echo "$@" >> {tmp_path}/calls\ngrep -q DaemonSet && echo "{answer}" && exit 1\nexit 0'
    program(tmp_path, "kubectl", script)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert Tools(KubeContext("", "east")).changes(RENDERED, "system") == ["DaemonSet/plugin"]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 2
    assert all("--field-manager=spotladder-rollout" in call for call in calls)
    assert ["--namespace system" in call for call in calls] == [False, True]
