"""A member cluster on an API server in memory, in addition to the test's world."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from spotladder.clusters.connection import Connection
from spotladder.clusters.credentials import Fixed
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.operator import leader
from spotladder.operator.inventory.monitor import FAILURES, RETRY_INTERVAL
from spotladder.resources import NAMESPACES
from tests.clusters.fake import FakeApiServer, FakeClient
from tests.kube.second_cluster import ControlledConnection
from tests.kube.world import KubeWorld
from tests.operator.memory_world import filled_world


class MemberCluster(KubeWorld):
    """The test's namespace in a member cluster. Tests act on it directly; the controller reaches it through `proxy`,
    unless the proxy is cut."""

    def __init__(self, kube: KubeWorld) -> None:
        self.objects = FakeApiServer(kube.clock)
        super().__init__(FakeClient(self.objects, kube.clock), None, kube.namespace)  # type: ignore[arg-type]
        self.clock = kube.clock
        self.proxy = self
        self.source = ControlledConnection(Connection("https://east.example", Fixed()))
        self.is_cut = False
        self.controllers: list[MemberClient] = []

    async def cut(self) -> None:
        """Close the connection until the controller counts the cluster as unreachable."""
        self.is_cut = True
        for client in self.controllers:
            if client.watcher is not None:
                client.watcher("watch", "pods", 0)
        for _ in range(FAILURES + 1):
            await self.clock.advance(RETRY_INTERVAL)

    def mend(self) -> None:
        self.is_cut = False


class MemberClient(FakeClient):
    """A client of the controller. `given` are the arguments with which the controller made it."""

    def __init__(self, east: MemberCluster, given: dict[str, Any]) -> None:
        super().__init__(east.objects, east.clock)
        self.guard, self.given, self._east = given["guard"], given, east
        east.controllers.append(self)

    def _answer(self, *, write: bool = False) -> None:
        if self._east.is_cut:
            raise ClusterUnreachable("no connection to https://east.example")
        super()._answer(write=write)


@asynccontextmanager
async def two_clusters_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[tuple[KubeWorld, MemberCluster]]:
    """The home cluster, and `east` with its own tier `spot-east`, as `tests.kube.test_clusters.two_clusters` makes
    them on two real API servers."""
    async with filled_world() as kube:
        east = MemberCluster(kube)
        monkeypatch.setattr(leader, "Client", lambda **given: MemberClient(east, given))
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        await kube.client.create(NAMESPACES, body)
        await east.make_namespace()
        await kube.capacity("spot-east", cluster="east")
        yield kube, east
