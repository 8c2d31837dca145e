"""The cluster that a command line names, and the error of a command that is refused."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.errors import SpotladderError


class Refused(SpotladderError):
    """The command's arguments are invalid, or the cluster rejects the request. Exit code 2."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class ClusterTarget:
    """The cluster and namespace from the command line; None for the defaults of the kubeconfig."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None
