"""Kubernetes resources: what each kind is called, and where the API server has it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GVR:
    """A kind of object and where the API server has it. `group` "" is the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


PODS = GVR("", "v1", "pods", "Pod")
NODES = GVR("", "v1", "nodes", "Node", namespaced=False)
EVENTS = GVR("", "v1", "events", "Event")
ACCESS_REVIEWS = GVR(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
DISRUPTION_BUDGETS = GVR("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
NAMESPACES = GVR("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = GVR("", "v1", "secrets", "Secret")
CONFIG_MAPS = GVR("", "v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS = GVR("", "v1", "serviceaccounts", "ServiceAccount")
VOLUME_CLAIMS = GVR("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PRIORITY_CLASSES = GVR("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
RUNTIME_CLASSES = GVR("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
TIEREDJOBS = GVR("spotladder.io", "v1alpha1", "tieredjobs", "TieredJob")
CAPACITYTIERS = GVR("spotladder.io", "v1alpha1", "capacitytiers", "CapacityTier", namespaced=False)
