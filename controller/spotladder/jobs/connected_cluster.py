"""A cluster in the user's namespace, and API errors as messages for users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spotladder.clusters.errors import ClusterUnreachable, Forbidden, Invalid, NotFound, ServerTrouble, Unauthorized
from spotladder.errors import EnvironmentFailure, Refused, SpotladderError
from spotladder.jobs import kubernetes_names
from spotladder.resources import TIEREDJOBS

if TYPE_CHECKING:
    from spotladder.clusters.client import Client
    from spotladder.clusters.connection import Connection

Object = dict[str, Any]

MANAGER = "spotladder-cli"
"""Field manager of the writes of the commands and the client."""


class ConnectedCluster:
    """A connected cluster. `namespace` is the namespace of job names, by default that of the context; `context` is the
    name of the cluster in messages."""

    def __init__(self, client: Client, namespace: str | None = None) -> None:
        self.client = client
        self.context = client.connection.context
        self.namespace = kubernetes_names.namespace(namespace) if namespace else _namespace_of(client.connection)

    async def job(self, name: str) -> Object:
        """The TieredJob. Raises Refused if it does not exist."""
        try:
            return await self.client.get(TIEREDJOBS, kubernetes_names.job(name), self.namespace)
        except NotFound:
            raise await self.absent(name) from None

    async def absent(self, name: str) -> SpotladderError:
        """The error for a missing TieredJob: TieredJobs are not installed, or the job does not exist."""
        if not await self.installed():
            return _not_installed(self.context)
        listing = f"spotladder get -n {self.namespace}"
        return Refused(f"tieredjob {name} not found in namespace {self.namespace}: {listing} lists all jobs")

    async def installed(self) -> bool:
        """Whether the cluster has the TieredJob definition; True if the cluster does not answer."""
        try:
            return await self.client.exists(TIEREDJOBS)
        except SpotladderError:
            return True


async def for_user(error: SpotladderError, cluster: ConnectedCluster) -> SpotladderError:
    """The API error with a message for the user of the command."""
    where = f"context {cluster.context}" if cluster.context else "the kubeconfig"
    match error:
        case Unauthorized():
            return EnvironmentFailure(f"{where}: the cluster rejects its credentials: log in again")
        case Forbidden():
            return EnvironmentFailure(
                f"{where}: {error.message}; ask an administrator of the cluster for this permission"
            )
        case ServerTrouble():
            server = cluster.client.connection.server
            return EnvironmentFailure(f"{where}: the API server at {server} fails ({error}); try again later")
        case ClusterUnreachable():
            server = cluster.client.connection.server
            return EnvironmentFailure(
                f"{where}: the API server at {server} cannot be reached ({error}); check the network, or choose "
                f"another --context"
            )
        case NotFound():
            return Refused(error.message) if await cluster.installed() else _not_installed(cluster.context)
        case Invalid():
            return Refused(f"the cluster rejects the object: {error.message}")
    return error


def _namespace_of(connection: Connection) -> str:
    """The namespace of the context. Raises Refused if it is not a valid name."""
    try:
        return kubernetes_names.namespace(connection.namespace)
    except Refused as error:
        wrong = f"context {connection.context}: invalid namespace: {error}"
        raise Refused(f"{wrong}; specify another with --namespace") from None


def _not_installed(context: str) -> EnvironmentFailure:
    return EnvironmentFailure(
        f"context {context}: TieredJobs are not installed in this cluster: helm install spotladder-crds "
        f"charts/spotladder-crds"
    )
