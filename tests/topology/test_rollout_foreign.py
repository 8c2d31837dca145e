"""A rollout installs no KubeRay and no Karpenter beside another one, and no KubeRay where the user provides it."""

from __future__ import annotations

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder_infra.kubecontext import KubeContext
from spotladder_infra.rollout.foreign import VERSION_LABEL, check_karpenter, check_kuberay
from spotladder_infra.rollout.tools import Object, Tools
from spotladder_infra.topology.cluster import Cluster


class OperatorCluster(Tools):
    """A fake cluster with these Deployments, and with a Secret of Helm if a rollout has installed the release."""

    def __init__(self, *deployments: Object, by_a_rollout: bool = False) -> None:
        super().__init__(KubeContext("/nowhere", "lab"))
        secrets: list[Object] = [{}] if by_a_rollout else []
        object.__setattr__(self, "objects", {"deployments.apps": list(deployments), "secrets": secrets})

    objects: dict[str, list[Object]]

    def get(self, *arguments: str) -> Object | None:
        named = arguments[-1] in (
            f"--field-selector=metadata.name={name}" for name in ("kuberay-operator", "karpenter")
        )
        assert named or arguments[0] == "secrets"
        return {"items": self.objects[arguments[0]]}


def deployment(namespace: str, *owner: str) -> Object:
    keys = ("meta.helm.sh/release-name", "meta.helm.sh/release-namespace")
    metadata = {"name": "kuberay-operator", "namespace": namespace, "annotations": dict(zip(keys, owner, strict=False))}
    return {"metadata": metadata}


LAB = Cluster.model_validate({"name": "lab", "cloud": "existing", "context": "lab"})
PROVIDED = Cluster.model_validate({"name": "lab", "cloud": "existing", "context": "lab", "provides": ["kuberay"]})


OURS = deployment("kuberay-system", "kuberay-operator", "kuberay-system")


@pytest.mark.parametrize("deployments", [(), (OURS,)])
def test_a_cluster_without_another_kuberay(deployments: tuple[Object, ...]) -> None:
    check_kuberay(OperatorCluster(*deployments), LAB)


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
        check_kuberay(OperatorCluster(OURS, other), LAB)
    where = other["metadata"]["namespace"]
    assert str(refused.value).startswith(f"cluster lab: KubeRay already runs in namespace {where}, ")
    assert f"({remedy})" in str(refused.value)


def of_image(image: str, label: str = "") -> Object:
    """A KubeRay of the user."""
    found = deployment("ray", "kuberay", "ray")
    found["metadata"]["labels"] = {VERSION_LABEL: label} if label else {}
    return {**found, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}}


@pytest.mark.parametrize(
    "provided",
    [
        of_image("quay.io/kuberay/operator:v1.6.1"),
        of_image("registry.example.com:5000/operator:1.5.0@sha256:0"),
        of_image("registry.example.com:5000/operator@sha256:0", "v1.6.0"),
    ],
)
def test_a_kuberay_of_the_user_is_accepted_where_the_cluster_provides_it(provided: Object) -> None:
    check_kuberay(OperatorCluster(provided), PROVIDED)


@pytest.mark.parametrize(
    ("deployments", "message"),
    [
        ((), "provides kuberay, but no Deployment kuberay-operator runs there"),
        ((OURS,), "provides kuberay, but its KubeRay is release kuberay-operator in namespace kuberay-system"),
        ((of_image("quay.io/kuberay/operator:v1.3.0"),), "KubeRay 1.3.0 is not supported: choose one of 1.5, 1.6"),
        ((of_image("quay.io/kuberay/operator:nightly"),), "the version of its KubeRay is not known"),
    ],
)
def test_a_provided_kuberay_that_does_not_fit(deployments: tuple[Object, ...], message: str) -> None:
    with pytest.raises(EnvironmentFailure) as refused:
        check_kuberay(OperatorCluster(*deployments), PROVIDED)
    assert str(refused.value).startswith(f"cluster lab: {message}")


EXISTS = Cluster.model_validate(
    {
        "name": "east", "cloud": "aws", "existing": "prod", "region": "us-east-1", "zones": ["us-east-1a"],
        "network": {"existing": {"subnetTags": {"tier": "private"}}},
    }
)  # fmt: skip
OF_A_ROLLOUT = deployment("kube-system", "karpenter", "kube-system")


def test_a_karpenter_of_a_rollout_stays() -> None:
    check_karpenter(OperatorCluster(OF_A_ROLLOUT, by_a_rollout=True), EXISTS)
    check_karpenter(OperatorCluster(OF_A_ROLLOUT, by_a_rollout=False), LAB)


@pytest.mark.parametrize(
    ("found", "by_a_rollout"),
    [(OF_A_ROLLOUT, False), (deployment("karpenter", "karpenter", "karpenter"), True), (deployment("karpenter"), True)],
)
def test_a_karpenter_of_the_user_is_refused(found: Object, by_a_rollout: bool) -> None:
    where = found["metadata"]["namespace"]
    with pytest.raises(EnvironmentFailure, match=f"cluster east: a Karpenter of yours runs in namespace {where}: rem"):
        check_karpenter(OperatorCluster(found, by_a_rollout=by_a_rollout), EXISTS)
