"""The pinned versions of all charts, their digests where they are known, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from spotladder import versions

OWN = ""
"""Source of a chart that is part of this package."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart at one version. `source` is an OCI registry, a chart repository, or OWN.

    `digest` is the SHA-256 of the packed chart, from DIGESTS. Without one, a cluster records the digest of its first
    good rollout; later rollouts reject a different content under the same version.
    """

    name: str
    version: str
    source: str = OWN
    digest: str = ""

    @property
    def file(self) -> str:
        """The name of the packed chart."""
        return f"{self.name}-{self.version}.tgz"

    def of_mirror(self, mirror: str | None) -> Chart:
        """The chart in a mirror, below the address of its own repository."""
        if mirror is None or self.source == OWN:
            return self
        return replace(self, source=f"oci://{mirror}/{self.source.partition('://')[2]}")


@dataclass(frozen=True, slots=True)
class Component:
    """A Helm release. `image` is the repository of its image, and `image_value` the value of the chart that has it.
    `values` are those of a cluster."""

    name: str
    release: str
    chart: Chart
    namespace: str
    image: str = ""
    image_value: str = "image.repository"
    values: dict[str, Any] = field(default_factory=dict)

    def of_mirror(self, mirror: str | None) -> Component:
        """The release with its chart from a mirror."""
        return self if mirror is None else replace(self, chart=self.chart.of_mirror(mirror))

    def image_values(self, mirror: str | None) -> dict[str, Any]:
        """The values with which the chart takes its image from a mirror."""
        if mirror is None or not self.image:
            return {}
        found: Any = f"{mirror}/{self.image}"
        for key in reversed(self.image_value.split(".")):
            found = {key: found}
        return dict(found)


DIGESTS: Mapping[str, str] = MappingProxyType(
    {
        "aws-efa-k8s-device-plugin-v0.5.30.tgz": "43b3d666f81a40b7f7ac88ee04a64954abaaa061b1e5f54dc7ce4beb3374e32a",
        "nvidia-device-plugin-0.18.0.tgz": "3abe7949ce08e14dac6a3ebf81d6e2ed3fca15a0a0fb751e67de40c72761d4e4",
    }
)
"""SHA-256 of packed charts by file name, as their publishers state them.

Enter a digest only from the index of the chart's repository (`digest` in index.yaml) or from `make digests`, which
downloads the charts. Those that are not listed yet: each cluster records their digests.
Sources: index.yaml of nvidia.github.io/k8s-device-plugin as of 2025-10-21, and index.yaml and the packed chart of
aws.github.io/eks-charts as of 2026-08-03.
"""


def _public(name: str, version: str, source: str) -> Chart:
    """A chart of a public repository, with its digest where that is known."""
    chart = Chart(name, version, source)
    return replace(chart, digest=DIGESTS.get(chart.file, ""))


KARPENTER = "karpenter"
SYSTEM = "spotladder-system"

_GCP = "https://cloudpilot-ai.github.io/karpenter-provider-gcp"
_AWS = "oci://public.ecr.aws/karpenter"

OWN_VERSION = "0.1.0"
"""Version of the charts in this package; a test compares it with their Chart.yaml."""

SPOTLADDER_CRDS = Chart("spotladder-crds", OWN_VERSION)
KARPENTER_CRDS_AWS = _public("karpenter-crd", versions.KARPENTER, _AWS)
KARPENTER_CRDS_GCP = _public("karpenter-crd", versions.KARPENTER_GCP, _GCP)

KARPENTER_AWS = Component(
    "karpenter",
    "karpenter",
    _public(KARPENTER, versions.KARPENTER, _AWS),
    "kube-system",
    "public.ecr.aws/karpenter/controller",
    "controller.image.repository",
)
KARPENTER_GCP = Component(
    "karpenter",
    "karpenter",
    _public(KARPENTER, versions.KARPENTER_GCP, _GCP),
    "kube-system",
    "public.ecr.aws/cloudpilotai/gcp/karpenter",
    "controller.image.repository",
)
JOBSET = Component(
    "jobset",
    "jobset",
    _public("jobset", "0.12.0", "oci://registry.k8s.io/jobset/charts"),
    "jobset-system",
    "registry.k8s.io/jobset/jobset",
)
KUEUE = Component(
    "kueue",
    "kueue",
    _public("kueue", "0.19.2", "oci://registry.k8s.io/kueue/charts"),
    "kueue-system",
    "registry.k8s.io/kueue/kueue",
    "controllerManager.manager.image.repository",
)
GPU_DEVICE_PLUGIN = Component(
    "gpu-device-plugin",
    "nvidia-device-plugin",
    _public("nvidia-device-plugin", "0.18.0", "https://nvidia.github.io/k8s-device-plugin"),
    "kube-system",
    "nvcr.io/nvidia/k8s-device-plugin",
)
EFA_DEVICE_PLUGIN = Component(
    "efa-device-plugin",
    "aws-efa-k8s-device-plugin",
    _public("aws-efa-k8s-device-plugin", "v0.5.30", "https://aws.github.io/eks-charts"),
    "kube-system",
    "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin",
)
NEURON_DEVICE_PLUGIN = Component(
    "neuron-device-plugin",
    "neuron-helm-chart",
    _public("neuron-helm-chart", "1.9.0", "oci://public.ecr.aws/neuron"),
    "kube-system",
    "public.ecr.aws/neuron/neuron-device-plugin",
    "devicePlugin.image.repository",
)
POOLS = Component("pools", "spotladder-pools", Chart("spotladder-pools", OWN_VERSION), SYSTEM)
KUBERAY = Component(
    "kuberay",
    "kuberay-operator",
    _public("kuberay-operator", versions.KUBERAY, "https://ray-project.github.io/kuberay-helm"),
    "kuberay-system",
    "quay.io/kuberay/operator",
)
CONTROLLER = Component("controller", "spotladder", Chart("spotladder", OWN_VERSION), SYSTEM)

NAMESPACES = frozenset(
    component.namespace
    for component in (
        KARPENTER_AWS,
        KARPENTER_GCP,
        JOBSET,
        KUEUE,
        GPU_DEVICE_PLUGIN,
        EFA_DEVICE_PLUGIN,
        NEURON_DEVICE_PLUGIN,
        POOLS,
        KUBERAY,
        CONTROLLER,
    )
)
"""The namespaces of all releases, in which users may not write."""
