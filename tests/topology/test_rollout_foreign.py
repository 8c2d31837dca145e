"""A rollout installs no KubeRay beside another one."""

from __future__ import annotations

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.access import KubeContext
from spotladder_infra.rollout.foreign import refuse_second_kuberay
from spotladder_infra.rollout.tools import Object, Tools


class OperatorCluster(Tools):
    """Has these Deployments named kuberay-operator."""

    def __init__(self, *deployments: Object) -> None:
        super().__init__(KubeContext("/nowhere", "lab"))
        object.__setattr__(self, "deployments", list(deployments))

    def get(self, *arguments: str) -> Object | None:
        assert "--field-selector=metadata.name=kuberay-operator" in arguments
        return {"items": self.deployments}  # type: ignore[attr-defined]


def deployment(namespace: str, *owner: str) -> Object:
    keys = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
    metadata = {"name": "kuberay-operator", "namespace": namespace, "annotations": dict(zip(keys, owner, strict=False))}
    return {"metadata": metadata}


OURS = deployment("kuberay-system", "kuberay-operator", "kuberay-system")


@pytest.mark.parametrize("deployments", [(), (OURS,)])
def test_a_cluster_without_another_kuberay(deployments: tuple[Object, ...]) -> None:
    refuse_second_kuberay(OperatorCluster(*deployments), "lab")


@pytest.mark.parametrize(
    ("other", "remedy"),
    [
        (deployment("default", "kuberay-operator", "default"), "helm uninstall kuberay-operator --namespace default"),
        (deployment("kuberay-system", "ray", "kuberay-system"), "helm uninstall ray --namespace kuberay-system"),
        (deployment("ray"), "kubectl delete deployment kuberay-operator --namespace ray"),
    ],
)
def test_another_kuberay_is_refused_with_the_command_that_removes_it(other: Object, remedy: str) -> None:
    with pytest.raises(EnvironmentFailure) as refused:
        refuse_second_kuberay(OperatorCluster(OURS, other), "lab")
    where = other["metadata"]["namespace"]
    assert str(refused.value).startswith(f"cluster lab: KubeRay already runs in namespace {where}, ")
    assert f"({remedy})" in str(refused.value)
