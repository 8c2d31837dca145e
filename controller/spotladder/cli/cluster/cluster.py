"""One command's talk with the API server: the operator's client, and its answers in words for who typed the command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from spotladder.cli.cluster import names
from spotladder.errors import EnvironmentFailure, SpotladderError

if TYPE_CHECKING:
    from spotladder.clusters.client import Client
    from spotladder.clusters.connection import Connection

T = TypeVar("T")
Object = dict[str, Any]

MANAGER = "spotladder-cli"
"""The field manager of what these commands write."""


class Refused(SpotladderError):
    """The command cannot be carried out as it was given."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Target:
    """Which cluster and namespace, as it was said on the command line."""

    namespace: str | None = None
    context: str | None = None
    kubeconfig: str | None = None


class Cluster:
    """The cluster while a command runs. `namespace` is where names are looked up; `context` is what messages say."""

    def __init__(self, client: Client, target: Target) -> None:
        self.client = client
        self.context = client.connection.context
        self.namespace = target.namespace or _namespace_of(client.connection)

    async def job(self, name: str) -> Object:
        """The TieredJob. Raises Refused when there is none of that name."""
        from spotladder.clusters.errors import NotFound
        from spotladder.operator.records import TIEREDJOBS

        try:
            return await self.client.get(TIEREDJOBS, name, self.namespace)
        except NotFound:
            raise await self.absent(name) from None

    async def absent(self, name: str) -> SpotladderError:
        """Why there is no such TieredJob."""
        if not await self.installed():
            return _not_installed(self.context)
        listing = f"spotladder get -n {self.namespace}"
        return Refused(f"tieredjob {name} is not in namespace {self.namespace}: {listing} shows what is")

    async def installed(self) -> bool:
        """Whether the cluster knows TieredJobs, as far as can be asked."""
        from spotladder.operator.records import TIEREDJOBS

        try:
            return await self.client.exists(TIEREDJOBS)
        except SpotladderError:
            return True


def on_cluster(target: Target, work: Callable[[Cluster], Awaitable[T]]) -> T:
    """Do the work on the cluster that is meant. Raises SpotladderError in words for the user."""
    try:
        from spotladder.clusters.client import Client
        from spotladder.clusters.connection import connect
    except ModuleNotFoundError as error:
        raise EnvironmentFailure(f"{error.name} is missing: pip install 'spotladder[operator]'") from None

    connection = connect(target.kubeconfig, target.context)

    async def talk() -> T:
        async with Client(connection, manager=MANAGER) as client:
            cluster = Cluster(client, target)
            try:
                return await work(cluster)
            except SpotladderError as error:
                raise await in_words(error, cluster) from None

    return asyncio.run(talk())


async def in_words(error: SpotladderError, cluster: Cluster) -> SpotladderError:
    """The error as it is said to who typed the command."""
    from spotladder.clusters.errors import ClusterUnreachable, Forbidden, Invalid, NotFound, ServerTrouble, Unauthorized

    where = f"context {cluster.context}" if cluster.context else "the kubeconfig"
    match error:
        case Unauthorized():
            return EnvironmentFailure(f"{where}: the cluster does not take its credentials: log in again")
        case Forbidden():
            return EnvironmentFailure(f"{where}: {error.message}; who runs the cluster can grant it")
        case ServerTrouble():
            server = cluster.client.connection.server
            return EnvironmentFailure(f"{where}: the cluster at {server} is in trouble ({error}); try again later")
        case ClusterUnreachable():
            server = cluster.client.connection.server
            return EnvironmentFailure(f"{where}: the cluster at {server} cannot be reached ({error}); try --context")
        case NotFound():
            return Refused(error.message) if await cluster.installed() else _not_installed(cluster.context)
        case Invalid():
            return Refused(f"the cluster refuses it: {error.message}")
    return error


def _namespace_of(connection: Connection) -> str:
    """The context's own. Raises Refused."""
    try:
        return names.namespace(connection.namespace)
    except typer.BadParameter as error:
        wrong = f"context {connection.context}: its namespace: {error.message}"
        raise Refused(f"{wrong}; give another with --namespace") from None


def _not_installed(context: str) -> EnvironmentFailure:
    return EnvironmentFailure(
        f"context {context}: this cluster has no TieredJobs: helm install spotladder-crds charts/spotladder-crds"
    )
