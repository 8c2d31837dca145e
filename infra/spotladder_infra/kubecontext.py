"""Selects the cluster for helm and kubectl. Imports nothing of the fleet, so that a provider's process starts fast."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KubeContext:
    """A context of a kubeconfig. `kubeconfig` is a path, or several as in the variable KUBECONFIG."""

    kubeconfig: str
    context: str

    def environment(self) -> dict[str, str]:
        """The environment variables that kubectl and helm need in addition to `--context`."""
        return {"KUBECONFIG": self.kubeconfig}
