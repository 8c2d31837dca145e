"""A second cluster in addition to the test's world, and the connection to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from spotladder.clusters.client import Client
from spotladder.clusters.connection import Connection, connect
from spotladder.clusters.registry import ConnectionSource
from spotladder.resources import DISRUPTION_BUDGETS, NETWORK_POLICIES, NODES, PODS
from spotladder.workloads.rayjob.records import RAYCLUSTERS, RAYJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.proxy import Proxy
from tests.kube.world import KubeWorld, quietly


class SecondCluster(KubeWorld):
    """The same namespace in another cluster. Tests act on it directly; the controller reaches it through `proxy`."""

    def __init__(self, client: Client, server: ApiServer, namespace: str, proxy: Proxy) -> None:
        super().__init__(client, server, namespace)
        self.proxy = proxy

    @property
    def source(self) -> ConnectionSource:
        return ControlledConnection(self.proxy.of(self.client.connection))

    async def clean(self) -> None:
        for kind in (RAYJOBS, RAYCLUSTERS, PODS, DISRUPTION_BUDGETS, NETWORK_POLICIES):
            await quietly(self.client.delete_all(kind, self.namespace, labels=""))
        for node in self._nodes:
            await quietly(self.client.delete(NODES, node))


class ControlledConnection:
    """A `ConnectionSource` that a test controls."""

    def __init__(self, connection: Connection) -> None:
        self.now = connection

    async def connection(self, *, fresh: bool = False) -> Connection:
        return self.now


@asynccontextmanager
async def second_cluster(server: ApiServer, kube: KubeWorld) -> AsyncIterator[SecondCluster]:
    """A second cluster for the test's jobs; cleaned up afterwards."""
    proxy = Proxy(server.url)
    await proxy.start()
    async with Client(connect(str(server.kubeconfig))) as client:
        made = SecondCluster(client, server, kube.namespace, proxy)
        await made.make_namespace()
        try:
            yield made
        finally:
            await made.clean()
            await proxy.stop()
