"""The pinned versions of all charts, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder import versions

OWN = ""
"""Source of a chart that is part of this package."""


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart at one version. `source` is an OCI registry, a chart repository, or OWN.

    `digest` is the SHA-256 of the packed chart. Without one, the digest of the first rollout is kept in the
    state, and other content under the same version is refused from then on.
    """

    name: str
    version: str
    source: str = OWN
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Component:
    """A Helm release."""

    name: str
    release: str
    chart: Chart
    namespace: str


KARPENTER = "karpenter"
SYSTEM = "spotladder-system"

_GCP = "https://cloudpilot-ai.github.io/karpenter-provider-gcp"
_AWS = "oci://public.ecr.aws/karpenter"

OWN_VERSION = "0.1.0"
"""Version of the charts in this package; a test compares it with their Chart.yaml."""

SPOTLADDER_CRDS = Chart("spotladder-crds", OWN_VERSION)
KARPENTER_CRDS_AWS = Chart("karpenter-crd", versions.KARPENTER, _AWS)
KARPENTER_CRDS_GCP = Chart("karpenter-crd", versions.KARPENTER_GCP, _GCP)

KARPENTER_AWS = Component("karpenter", "karpenter", Chart(KARPENTER, versions.KARPENTER, _AWS), "kube-system")
KARPENTER_GCP = Component("karpenter", "karpenter", Chart(KARPENTER, versions.KARPENTER_GCP, _GCP), "kube-system")
JOBSET = Component(
    "jobset", "jobset", Chart("jobset", "0.12.0", "oci://registry.k8s.io/jobset/charts"), "jobset-system"
)
GPU_DEVICE_PLUGIN = Component(
    "gpu-device-plugin",
    "nvidia-device-plugin",
    Chart("nvidia-device-plugin", "0.18.0", "https://nvidia.github.io/k8s-device-plugin"),
    "kube-system",
)
POOLS = Component("pools", "spotladder-pools", Chart("spotladder-pools", OWN_VERSION), SYSTEM)
KUBERAY = Component(
    "kuberay",
    "kuberay-operator",
    Chart("kuberay-operator", versions.KUBERAY, "https://ray-project.github.io/kuberay-helm"),
    "kuberay-system",
)
CONTROLLER = Component("controller", "spotladder", Chart("spotladder", OWN_VERSION), SYSTEM)
