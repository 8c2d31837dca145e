"""Faults of the API server: lost history, and connections that break. No action is repeated or lost, and no status is
written without need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.core.model import codec
from spotladder.resources import TIEREDJOBS
from tests.kube.apiserver import ApiServer
from tests.kube.proxy import Proxy
from tests.kube.world import KubeWorld, eventually, world


async def test_the_caches_relist_after_a_compaction(api_server: ApiServer) -> None:
    async with world(api_server) as kube, _Through(api_server) as (proxy, client), kube.operator(client=client):
        await kube.submit()
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        await proxy.cut()  # The controller does not observe the following changes.
        await kube.kill_worker(1)
        for index in range(20):
            await kube.client.merge(
                TIEREDJOBS, "digits", kube.namespace, body={"metadata": {"labels": {"a": f"{index}"}}}
            )
        api_server.compact()
        api_server.stop()
        api_server.start()  # The watch cache of the new process starts after the compacted revision.
        proxy.mend()
        await eventually(lambda: _failures(kube, 1))
        assert await kube.rayjobs() == ["digits-a001"]


async def _failures(kube: KubeWorld, number: int) -> bool:
    return (await kube.status()).get("failures") == number


async def test_a_job_continues_after_a_restore_of_etcd(api_server: ApiServer) -> None:
    """The persisted revision is higher than those of the server, as after a restore from a backup or a move to a new
    cluster."""
    async with world(api_server) as kube:
        async with kube.operator():
            await kube.submit()
            await kube.run(1)
            await eventually(lambda: kube.has_phase("Running"))
        before = codec.load_state((await kube.status())["state"])
        state = codec.pack(replace(before, revision=int(f"9{before.revision}")))
        await kube.client.merge(
            TIEREDJOBS, "digits", kube.namespace, body={"status": {"state": state}}, subresource="status"
        )
        async with kube.operator():
            await kube.kill_worker(1)
            await eventually(lambda: _failures(kube, 1))


async def test_nothing_is_written_when_nothing_changes(api_server: ApiServer) -> None:
    async with world(api_server) as kube, kube.operator() as runtime:
        await kube.submit()
        await kube.run(1)
        await eventually(lambda: kube.has_phase("Running"))
        kube.bucket.commit(kube.namespace, "digits", attempt=1, step=10)
        await kube.clock.advance(30)
        await eventually(lambda: _at_step(kube, 10))
        await kube.idle()
        version = (await kube.job())["metadata"]["resourceVersion"]
        for _ in range(20):
            await kube.clock.advance(10)
            runtime.queue.add((kube.namespace, "digits"))
            await kube.idle()
        assert (await kube.job())["metadata"]["resourceVersion"] == version


async def _at_step(kube: KubeWorld, step: int) -> bool:
    return ((await kube.status()).get("progress") or {}).get("step") == step


class _Through:
    """A client that reaches the API server through a `Proxy`."""

    def __init__(self, server: ApiServer) -> None:
        self._proxy = Proxy(server.url)
        self._server = server

    async def __aenter__(self) -> tuple[Proxy, Client]:
        await self._proxy.start()
        connection = connect(str(self._server.kubeconfig))
        self._client = Client(self._proxy.of(connection))
        await self._client.__aenter__()
        return self._proxy, self._client

    async def __aexit__(self, *_: Any) -> None:
        await self._client.__aexit__(None, None, None)
        await self._proxy.stop()
