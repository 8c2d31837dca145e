"""The cluster that a command line names, and the error of a command that is refused."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.cli.options import ContextOption, KubeconfigOption, NamespaceOption
from spotladder.errors import SpotladderError


class Refused(SpotladderError):
    """The command's arguments are invalid, or the cluster rejects the request. Exit code 2."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """The cluster and namespace from the command line; None for the defaults of the kubeconfig.

    As a parameter of a command, it is the options --namespace, --context and --kubeconfig.
    """

    namespace: NamespaceOption = None
    context: ContextOption = None
    kubeconfig: KubeconfigOption = None

    @property
    def is_explicit(self) -> bool:
        """Whether the command line names a cluster."""
        return self.context is not None or self.kubeconfig is not None
