"""Refuses a cluster in which another installation of KubeRay runs.

Two KubeRay operators reconcile the same RayClusters and create each pod twice. Both public ways of installing KubeRay,
its chart and its manifests, name the Deployment kuberay-operator.
"""

from __future__ import annotations

from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout.components import KUBERAY
from spotladder_infra.rollout.tools import Object, Tools


def refuse_second_kuberay(tools: Tools, cluster: str) -> None:
    """Raises EnvironmentFailure when KubeRay runs in the cluster and is not the release of a rollout."""
    name = f"metadata.name={KUBERAY.release}"
    for found in tools.items("deployments.apps", "--all-namespaces", f"--field-selector={name}"):
        release, namespace = _owner(found)
        if (release, namespace) == (KUBERAY.release, KUBERAY.namespace):
            continue
        where = found["metadata"]["namespace"]
        remedy = (
            f"helm uninstall {release} --namespace {namespace}"
            if release
            else f"kubectl delete deployment {KUBERAY.release} --namespace {where}"
        )
        raise EnvironmentFailure(
            f"cluster {cluster}: KubeRay already runs in namespace {where}, and two operators would create each pod "
            f"twice: remove that one first ({remedy}); RayClusters and their CustomResourceDefinitions stay"
        )


def _owner(deployment: Object) -> tuple[str, str]:
    """The Helm release of an object and its namespace; empty when Helm has not installed it."""
    annotations = deployment["metadata"].get("annotations") or {}
    return annotations.get("meta.helm.sh/release-name", ""), annotations.get("meta.helm.sh/release-namespace", "")
