"""Connects a command to the API server with the operator's client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from spotladder.cli.target import ClusterTarget
from spotladder.errors import SpotladderError
from spotladder.extras import needs
from spotladder.jobs.connected_cluster import MANAGER, ConnectedCluster, for_user

T = TypeVar("T")


def on_cluster(target: ClusterTarget, work: Callable[[ConnectedCluster], Awaitable[T]]) -> T:
    """Run `work` with a connection to the target cluster. Raises SpotladderError with a message for the user."""
    with needs("operator"):
        from spotladder.clusters.client import Client
        from spotladder.clusters.connection import connect

    connection = connect(target.kubeconfig, target.context)

    async def talk() -> T:
        async with Client(connection, manager=MANAGER) as client:
            cluster = ConnectedCluster(client, target.namespace)
            try:
                return await work(cluster)
            except SpotladderError as error:
                raise await for_user(error, cluster) from None

    return asyncio.run(talk())
