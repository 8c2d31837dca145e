"""Splitting what Helm renders."""

from __future__ import annotations

from spotladder_infra.rollout import manifest
from spotladder_infra.rollout.ready import Workload, workloads

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
    (crd,) = manifest.of_kinds(RENDERED, ["CustomResourceDefinition"])
    assert manifest.crd_name(crd) == "as.example.com"
    assert workloads(RENDERED, "system") == [
        Workload("Deployment", "system", "controller"),
        Workload("DaemonSet", "kube-system", "plugin"),
    ]
    assert list(manifest.split(manifest.joined(text for _, text in manifest.split(RENDERED)))) == list(
        manifest.split(RENDERED)
    )


def test_a_name_that_is_not_in_block_style_is_parsed() -> None:
    assert manifest.crd_name("kind: CustomResourceDefinition\nmetadata: {name: x}") == "x"


def test_objects_are_told_apart_by_whether_they_name_a_namespace() -> None:
    named, unnamed = manifest.by_namespace(RENDERED)
    assert ["DaemonSet" in text for text in named] == [True]
    assert len(unnamed) == 2
    block = "kind: A\nmetadata:\n  name: x\n  namespace: y\nspec: {}"
    labelled = "kind: A\nmetadata:\n  name: x\n  labels:\n    namespace: y\nspec: {namespace: z}"
    assert manifest.by_namespace(f"{block}\n---\n{labelled}") == ([block], [labelled])
