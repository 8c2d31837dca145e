"""The cluster that a command line names."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.cli.options import ContextOption, KubeconfigOption, NamespaceOption


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """The cluster and namespace from the command line; None for the defaults of the kubeconfig.

    A command with a parameter of this type has the options --namespace, --context and --kubeconfig.
    """

    namespace: NamespaceOption = None
    context: ContextOption = None
    kubeconfig: KubeconfigOption = None

    @property
    def is_explicit(self) -> bool:
        """Whether the command line names a cluster."""
        return self.context is not None or self.kubeconfig is not None
