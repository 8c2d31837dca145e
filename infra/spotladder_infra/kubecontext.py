"""Kubeconfigs, and the choice of the cluster for helm and kubectl.

Imports nothing of the fleet, so that a provider's process starts fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KubeContext:
    """A context of a kubeconfig. `kubeconfig` is a path, or several as in the variable KUBECONFIG."""

    kubeconfig: str
    context: str

    def environment(self) -> dict[str, str]:
        """The environment variables that kubectl and helm need in addition to `--context`."""
        return {"KUBECONFIG": self.kubeconfig}


def kubeconfig(name: str, cluster: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """A kubeconfig with one context, whose cluster and user have its name."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
