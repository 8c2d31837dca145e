"""The breaker of one cluster, on a stepped clock and an API server that is a few lines of this file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import SteppedClock
from spotladder.clusters.connection import Connection
from spotladder.clusters.credentials import Fixed
from spotladder.errors import EnvironmentFailure
from spotladder.operator.inventory.monitor import LONGEST_PAUSE, POLL_INTERVAL, RETRY_INTERVAL, ClusterMonitor
from spotladder.resources import NODES
from spotladder.workloads.records import NodeRecord


class Server:
    """`status` is what it answers to everything; `lists` counts listings."""

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
    """A `Source` that a test sets."""

    def __init__(self, connection: Connection) -> None:
        self.now = connection
        self.broken = ""
        self.asked_fresh = 0

    async def connection(self, *, fresh: bool = False) -> Connection:
        self.asked_fresh += fresh
        if self.broken:
            raise EnvironmentFailure(self.broken)
        return self.now


class Scene:
    def __init__(self, url: str) -> None:
        self.server = Server()
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
        """Let the wire work, and time pass by so much at each look."""
        for _ in range(600):
            if holds():
                return
            await self.clock.advance(step)
            await asyncio.sleep(0.005)
        raise AssertionError(f"did not come about: {self.monitor.problem!r}, {self.changes}")


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    made = Scene("")
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


async def test_a_cluster_is_up_once_everything_is_listed() -> None:
    async with scene() as here:
        assert not here.monitor.known
        await here.until(lambda: here.monitor.known)
        assert (here.monitor.problem, here.server.lists, here.changes) == ("", 1, [""])
        asked = here.server.asked
        await here.until(lambda: here.server.asked > asked, step=1.0)
        assert here.changes == [""]


async def test_one_lost_answer_is_nothing_and_three_are_an_outage() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.server.status = 500
        await here.clock.advance(POLL_INTERVAL)
        await here.until(lambda: here.source.asked_fresh == 0)
        assert here.monitor.problem == ""
        await here.until(lambda: here.monitor.problem, step=RETRY_INTERVAL / 10)
        assert "500" in here.monitor.problem
        assert len(here.changes) == 2


async def test_after_an_outage_everything_is_listed_anew_and_pauses_have_an_end() -> None:
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


async def test_a_call_without_an_answer_makes_it_look_at_once() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        await here.until(lambda: here.clock.sleepers >= 1)
        asked = here.server.asked
        here.monitor.heard("list", "pods", 0, 1.0)
        await here.until(lambda: here.server.asked > asked, step=RETRY_INTERVAL / 10)
        assert here.clock.ticks() < POLL_INTERVAL + RETRY_INTERVAL


async def test_a_rotated_connection_is_taken_over_without_an_outage() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.source.now = Connection(here.source.now.server, Fixed({"Authorization": "Bearer rotated"}))
        await here.until(lambda: here.server.lists == 2, step=1.0)
        assert here.changes == [""]


async def test_another_address_may_be_another_cluster() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.source.now = Connection(here.source.now.server.replace("127.0.0.1", "localhost"), Fixed())
        await here.until(lambda: len(here.changes) == 3, step=1.0)
        assert here.changes == ["", "its address has changed", ""]


async def test_what_is_not_understood_any_more_is_told_and_what_worked_goes_on() -> None:
    async with scene() as here:
        await here.until(lambda: here.monitor.known)
        here.source.broken = "Secret a/b: is not YAML"
        await here.until(lambda: here.monitor.doubt, step=1.0)
        assert (here.monitor.problem, here.monitor.doubt) == ("", "Secret a/b: is not YAML")
        here.source.broken = ""
        await here.until(lambda: not here.monitor.doubt, step=1.0)
        assert here.changes == ["", "Secret a/b: is not YAML", ""]


async def test_a_cluster_that_never_could_be_found_says_why() -> None:
    async with scene() as here:
        here.source.broken = "Secret a/b does not exist"
        await here.until(lambda: here.monitor.known)
        assert here.monitor.problem == "Secret a/b does not exist"
        here.source.broken = ""
        await here.until(lambda: not here.monitor.problem, step=1.0)
