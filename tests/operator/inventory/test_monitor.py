"""The monitor of one cluster, with a stepped clock and a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.connection import Connection
from spotladder.clusters.credentials import Fixed
from spotladder.errors import EnvironmentFailure
from spotladder.operator.inventory.monitor import LONGEST_PAUSE, POLL_INTERVAL, RETRY_INTERVAL, ClusterMonitor
from spotladder.resources import NODES
from spotladder.workloads.records import NodeRecord
from tests.clusters.stepped_clock import SteppedClock


class ReadyServer:
    """A fake API server. `status` is the code of every response; `lists` counts list requests."""

    def __init__(self) -> None:
        self.status = 200
        self.lists = 0
        self.asked = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.status != 200:
            return web.json_response({"reason": "Asked for", "message": ""}, status=self.status)
        if request.path == "/readyz":
            self.asked += 1
            return web.Response(text="ok")
        if request.query.get("watch"):
            answer = web.StreamResponse()
            await answer.prepare(request)
            await asyncio.sleep(3600)
        self.lists += 1
        return web.json_response({"metadata": {"resourceVersion": "7"}, "items": []})


class Somewhere:
    """A `Source` whose connection the test sets."""

    def __init__(self, connection: Connection) -> None:
        self.now = connection
        self.broken = ""
        self.asked_fresh = 0

    async def connection(self, *, fresh: bool = False) -> Connection:
        self.asked_fresh += fresh
        if self.broken:
            raise EnvironmentFailure(self.broken)
        return self.now


class MonitorScene:
    def __init__(self, url: str) -> None:
        self.server = ReadyServer()
        self.clock = SteppedClock()
        self.source = Somewhere(Connection(url, Fixed()))
        self.changes: list[str] = []
        client = Client(clock=self.clock)
        cache = Cache(client, NODES, NodeRecord.of, clock=self.clock, jitter=lambda: 0.5)
        self.monitor = ClusterMonitor(
            "east", self.source, client, lambda: [cache], clock=self.clock, changed=self._changed, jitter=lambda: 0.5
        )
        client.watcher = self.monitor.heard

    def _changed(self) -> None:
        self.changes.append(self.monitor.problem or self.monitor.doubt)

    async def until(self, holds: Any, step: float = 0.0) -> None:
        """Poll until `holds`, and advance the clock by `step` seconds each time."""
        for _ in range(600):
            if holds():
                return
            await self.clock.advance(step)
            await asyncio.sleep(0.005)
        raise AssertionError(f"the condition was not met: {self.monitor.problem!r}, {self.changes}")


@asynccontextmanager
async def scene() -> AsyncIterator[MonitorScene]:
    made = MonitorScene("")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.server.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.source.now = Connection(f"http://127.0.0.1:{runner.addresses[0][1]}", Fixed())
    running = asyncio.create_task(made.monitor.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await runner.cleanup()


async def test_one_failed_request_is_no_outage_and_three_are() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.server.status = 500
        await here.clock.advance(POLL_INTERVAL)
        await here.until(lambda: here.source.asked_fresh == 0)
        assert here.monitor.problem == ""
        await here.until(lambda: here.monitor.problem, step=RETRY_INTERVAL / 10)
        assert "500" in here.monitor.problem
        assert len(here.changes) == 2


async def test_after_an_outage_the_caches_relist_and_the_backoff_is_bounded() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.server.status = 503
        await here.until(lambda: here.monitor.problem, step=1.0)
        for _ in range(20):
            await here.clock.advance(LONGEST_PAUSE)
            await asyncio.sleep(0.01)
        here.server.status = 200
        lists = here.server.lists
        await here.until(lambda: not here.monitor.problem, step=LONGEST_PAUSE / 10)
        assert here.server.lists == lists + 1
        assert [bool(change) for change in here.changes] == [False, True, False]


async def test_a_request_without_an_answer_triggers_an_immediate_probe() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        await here.until(lambda: here.clock.sleepers >= 1)
        asked = here.server.asked
        here.monitor.heard("list", "pods", 0)
        await here.until(lambda: here.server.asked > asked, step=RETRY_INTERVAL / 10)
        assert here.clock.ticks() < POLL_INTERVAL + RETRY_INTERVAL


async def test_rotated_credentials_are_used_without_an_outage() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.source.now = Connection(here.source.now.server, Fixed({"Authorization": "Bearer rotated"}))
        await here.until(lambda: here.server.lists == 2, step=1.0)
        assert here.changes == [""]


async def test_a_changed_server_address_is_handled_as_an_outage() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.source.now = Connection(here.source.now.server.replace("127.0.0.1", "localhost"), Fixed())
        await here.until(lambda: len(here.changes) == 3, step=1.0)
        assert here.changes == ["", "its address has changed", ""]


async def test_an_invalid_kubeconfig_is_reported_while_the_previous_connection_stays_in_use() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.source.broken = "Secret a/b: is not YAML"
        await here.until(lambda: here.monitor.doubt, step=1.0)
        assert (here.monitor.problem, here.monitor.doubt) == ("", "Secret a/b: is not YAML")
        here.source.broken = ""
        await here.until(lambda: not here.monitor.doubt, step=1.0)
        assert here.changes == ["", "Secret a/b: is not YAML", ""]


async def test_a_cluster_that_was_never_reachable_reports_the_cause() -> None:
    async with scene() as here:
        here.source.broken = "Secret a/b does not exist"
        await here.until(lambda: here.monitor.known)
        assert here.monitor.problem == "Secret a/b does not exist"
        here.source.broken = ""
        await here.until(lambda: not here.monitor.problem, step=1.0)
