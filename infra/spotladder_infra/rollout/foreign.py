"""Checks that a cluster has one KubeRay and one Karpenter: the rollout's own or the user's, but not both.

Two KubeRay operators reconcile the same RayClusters and create each pod twice. Both public ways of installing KubeRay,
its chart and its manifests, name the Deployment kuberay-operator.
"""

from __future__ import annotations

import re

from spotladder import versions
from spotladder.errors import EnvironmentFailure
from spotladder_infra.rollout.components import KARPENTER, KARPENTER_AWS, KUBERAY
from spotladder_infra.rollout.release import Release
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import Autoscaler, Cluster, Provided

VERSION_LABEL = "app.kubernetes.io/version"

_VERSION = re.compile(r"v?\d+\.\d+\.\d+")


def check_kuberay(tools: Tools, cluster: Cluster) -> None:
    """Raises EnvironmentFailure if the cluster would have two KubeRays after a rollout, none, or an unsupported one."""
    name = f"metadata.name={KUBERAY.release}"
    found = tools.items("deployments.apps", "--all-namespaces", f"--field-selector={name}")
    if Provided.KUBERAY in cluster.provides:
        _check_provided(found, cluster.name)
    else:
        _refuse_second(found, cluster.name)


def check_karpenter(tools: Tools, cluster: Cluster) -> None:
    """Raises EnvironmentFailure if an existing cluster has a Karpenter that no rollout has installed: a second one
    would create nodes for the same pods, and a release of the same name would be changed."""
    if cluster.existing is None or cluster.provisioner is not Autoscaler.KARPENTER:
        return
    own = (KARPENTER_AWS.release, KARPENTER_AWS.namespace)  # the same on Google Cloud
    for found in tools.items("deployments.apps", "--all-namespaces", f"--field-selector=metadata.name={KARPENTER}"):
        if _owner(found) != own or not Release(tools, *own).installed_by_a_rollout():
            raise EnvironmentFailure(
                f"cluster {cluster.name}: a Karpenter of yours runs in namespace {found['metadata']['namespace']}: "
                "remove it, or keep it: describe the cluster with cloud: existing and pools with nodeClass"
            )


def _refuse_second(deployments: list[Object], cluster: str) -> None:
    for found in deployments:
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
            f"twice: remove that one first ({remedy}); RayClusters and their CustomResourceDefinitions stay. In an "
            "existing cluster, provides: [kuberay] keeps it instead"
        )


def _check_provided(deployments: list[Object], cluster: str) -> None:
    if not deployments:
        raise EnvironmentFailure(
            f"cluster {cluster}: provides kuberay, but no Deployment {KUBERAY.release} runs there: install KubeRay, or "
            "remove provides from the cluster"
        )
    for found in deployments:
        if _owner(found) == (KUBERAY.release, KUBERAY.namespace):
            raise EnvironmentFailure(
                f"cluster {cluster}: provides kuberay, but its KubeRay is release {KUBERAY.release} in namespace "
                f"{KUBERAY.namespace}, which a rollout manages: remove provides from the cluster"
            )
        version = _version(found)
        if version is None:
            raise EnvironmentFailure(
                f"cluster {cluster}: the version of its KubeRay is not known: neither the image's tag nor the label "
                f"{VERSION_LABEL} of Deployment {KUBERAY.release} has it: set the label"
            )
        for conflict in versions.conflicts(kubernetes=None, kuberay=version):
            raise EnvironmentFailure(f"cluster {cluster}: {conflict}")


def _version(deployment: Object) -> str | None:
    """The operator's version: the tag of its image, else the usual label."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    tags = [entry.get("image", "").partition("@")[0].rpartition("/")[2].partition(":")[2] for entry in containers]
    label = (deployment["metadata"].get("labels") or {}).get(VERSION_LABEL, "")
    found = next((text for text in (*tags, label) if _VERSION.fullmatch(text)), None)
    return None if found is None else found.removeprefix("v")


def _owner(deployment: Object) -> tuple[str, str]:
    """The Helm release of an object and its namespace; empty when Helm has not installed it."""
    annotations = deployment["metadata"].get("annotations") or {}
    return annotations.get("meta.helm.sh/release-name", ""), annotations.get("meta.helm.sh/release-namespace", "")
