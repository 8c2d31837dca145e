"""Kubernetes resources: the name of each kind and its path in the API."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class APIResource:
    """A kind of object and its path in the API. `group` "" is the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


PODS = APIResource("", "v1", "pods", "Pod")
NODES = APIResource("", "v1", "nodes", "Node", namespaced=False)
EVENTS = APIResource("", "v1", "events", "Event")
DISRUPTION_BUDGETS = APIResource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
NETWORK_POLICIES = APIResource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
NAMESPACES = APIResource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = APIResource("", "v1", "secrets", "Secret")
CONFIG_MAPS = APIResource("", "v1", "configmaps", "ConfigMap")
SERVICE_ACCOUNTS = APIResource("", "v1", "serviceaccounts", "ServiceAccount")
VOLUME_CLAIMS = APIResource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PRIORITY_CLASSES = APIResource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
RUNTIME_CLASSES = APIResource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
TIEREDJOBS = APIResource("spotladder.io", "v1alpha1", "tieredjobs", "TieredJob")
CAPACITYTIERS = APIResource("spotladder.io", "v1alpha1", "capacitytiers", "CapacityTier", namespaced=False)
