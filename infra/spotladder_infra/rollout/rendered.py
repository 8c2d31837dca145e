"""The releases of a cluster as files for Argo CD and Flux: the objects that a rollout installs, without a cluster.

The objects are Helm's output, unchanged. `kustomization.yaml` adds to them what Helm adds at the installation, the
namespace, and the wave in which Argo CD applies them; `flux.yaml` has the same order for Flux.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from spotladder_infra.names import SYSTEM_NAMESPACE
from spotladder_infra.rollout import crds
from spotladder_infra.rollout.charts import LocalChart
from spotladder_infra.rollout.components import OWN, Chart, Component
from spotladder_infra.rollout.plan import plan
from spotladder_infra.rollout.tools import OFFLINE
from spotladder_infra.topology.cluster import Cluster
from spotladder_infra.topology.fleet import Fleet
from spotladder_infra.topology.platform import COMPONENTS

FLUX_TIMEOUT = "10m"

KEEP = "helm.sh/resource-policy=keep"
"""The annotation of what Helm does not delete, such as the namespace of a team that the fleet file no longer has."""

KEPT = {
    "argocd.argoproj.io/sync-options": "Prune=false",
    "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
    "kustomize.toolkit.fluxcd.io/prune": "disabled",
}
"""The annotations of what Argo CD and Flux do not delete either. Argo CD respects Helm's annotation only when an
Application is deleted (argoproj/argo-cd, controller/appcontroller.go), and Flux does not."""


def objects(component: Component, chart: str, kubernetes: str) -> str:
    """The manifest of a release, as Helm installs it in a cluster with this version of Kubernetes."""
    return OFFLINE.helm(
        "template", component.release, chart, "--namespace", component.namespace, "--values", "-",
        "--kube-version", f"{kubernetes}.0", "--skip-crds", "--no-hooks", given=json.dumps(component.values),
    )  # fmt: skip


def write(fleet: Fleet, cluster: Cluster, find: Callable[[Chart], LocalChart], folder: Path) -> None:
    """Writes the CRDs and releases of a cluster below `folder`, one folder for each wave, in the order of a rollout.

    Raises:
        EnvironmentFailure: A chart cannot be found, or Helm rejects its values.
    """
    asked = plan(fleet, cluster)
    namespaces = sorted({step.namespace for step in asked.releases} - {SYSTEM_NAMESPACE})
    first = {"namespaces.yaml": _documents(_namespace(name) for name in namespaces)}
    for chart in asked.crds:
        first[f"{chart.name}.yaml"] = "\n---\n".join(crds.of_chart(OFFLINE, find(chart).path)) + "\n"
    waves: list[tuple[str, dict[str, str], list[dict[str, Any]]]] = [("00-crds", first, [_annotated("kept", KEPT)])]
    for step in asked.releases:
        number = COMPONENTS.index(step.name) + 1  # so that a folder keeps its name
        manifest = objects(step, find(step.chart).path, cluster.kubernetes)
        files = {"objects.yaml": manifest, "values.json": json.dumps(step.values, indent=2, sort_keys=True) + "\n"}
        waves.append((f"{number:02}-{step.name}", files, _transformers(step, number)))
    for name, files, transformers in waves:
        target = folder / cluster.name / name
        target.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (target / file).write_text(text, encoding="utf-8")
        resources = [file for file in files if file.endswith(".yaml")]
        (target / "kustomization.yaml").write_text(_documents([_kustomization(resources, transformers)]))
    names = [name for name, _, _ in waves]
    (folder / cluster.name / "kustomization.yaml").write_text(_documents([_kustomization(names, [])]))
    (folder / cluster.name / "flux.yaml").write_text(_documents(_flux((folder / cluster.name).as_posix(), names)))


def _documents(found: Iterable[Mapping[str, Any]]) -> str:
    """Objects as YAML, each in the notation of JSON, in which no text is a number or a boolean."""
    return "---\n".join(json.dumps(entry, indent=2) + "\n" for entry in found)


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _kustomization(resources: list[str], transformers: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": resources,
    }
    return {**found, "transformers": [json.dumps(entry) for entry in transformers]} if transformers else found


def _transformers(step: Component, wave: int) -> list[dict[str, Any]]:
    """Kustomize takes custom resources for namespaced ones; our own charts have them, and name every namespace."""
    annotations = _annotated("wave", {"argocd.argoproj.io/sync-wave": str(wave)})
    kept = {
        "apiVersion": "builtin",
        "kind": "PatchTransformer",
        "metadata": {"name": "kept"},
        "target": {"annotationSelector": KEEP},
        "patch": json.dumps(
            [
                {"op": "add", "path": f"/metadata/annotations/{key.replace('/', '~1')}", "value": value}
                for key, value in KEPT.items()
            ]
        ),
    }
    namespace = {
        "apiVersion": "builtin",
        "kind": "NamespaceTransformer",
        "metadata": {"name": "namespace", "namespace": step.namespace},
        "unsetOnly": True,
        "setRoleBindingSubjects": "none",
        "fieldSpecs": [{"path": "metadata/namespace", "create": True}],
    }
    return [annotations, kept] if step.chart.source == OWN else [annotations, kept, namespace]


def _annotated(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    """The transformer of this name, which adds annotations to every object."""
    return {
        "apiVersion": "builtin",
        "kind": "AnnotationsTransformer",
        "metadata": {"name": name},
        "annotations": annotations,
        "fieldSpecs": [{"path": "metadata/annotations", "create": True}],
    }


def _flux(path: str, waves: list[str]) -> Iterable[dict[str, Any]]:
    """A Kustomization of Flux for each wave, which waits until the objects of the wave before are ready."""
    before: list[dict[str, str]] = []
    for name in waves:
        resource = f"spotladder-{name}"
        yield {
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
            "kind": "Kustomization",
            "metadata": {"name": resource, "namespace": "flux-system"},
            "spec": {
                "interval": FLUX_TIMEOUT,
                "timeout": FLUX_TIMEOUT,
                "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
                "path": f"./{path}/{name}",
                "prune": True,
                "wait": True,
                "dependsOn": before,
            },
        }
        before = [{"name": resource}]
