"""The page over the jobs of a real API server."""

from __future__ import annotations

from aiohttp import ClientSession

from spotladder.clusters.client import Client
from spotladder.clusters.connection import connect
from spotladder.web.cluster_jobs import JobsOfCluster
from spotladder.web.server import serving
from tests.kube.apiserver import ApiServer
from tests.kube.world import eventually, world


async def test_the_page_follows_the_jobs_of_a_cluster(api_server: ApiServer) -> None:
    async with (
        world(api_server) as kube,
        kube.operator(),
        Client(connect(str(api_server.kubeconfig)), manager="page") as client,
        serving([JobsOfCluster(client, "west", kube.namespace)], "127.0.0.1", 0) as port,
        ClientSession(f"http://127.0.0.1:{port}") as browser,
    ):

        async def shows(*texts: str, path: str = "/") -> bool:
            page = await (await browser.get(path)).text()
            return all(text in page for text in texts)

        assert await shows("No jobs yet")
        async with browser.get("/changes") as changes:
            await kube.submit()
            assert await changes.content.readline() == b"event: changed\n"
        await kube.begin(1, "spot-a")
        await eventually(lambda: shows("digits", "Running", "spot-a", f"{kube.namespace} · west"))
        await kube.fall_back()
        await eventually(lambda: shows("spot-b", "2 failures on spot-a", path=f"/jobs/west/{kube.namespace}/digits"))
