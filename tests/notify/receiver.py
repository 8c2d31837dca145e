"""A receiver of messages on this machine, which fails as a test tells it to."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web


class Receiver:
    """Answers with each status of `failures` in turn, then with 200. Status 0: no answer at all."""

    def __init__(self, *failures: int) -> None:
        self.failures = list(failures)
        self.asked = 0
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.address = ""

    @property
    def events(self) -> list[Any]:
        """What it took: the items of all bodies."""
        return [event for body in self.bodies for event in json.loads(body)]

    async def take(self, request: web.Request) -> web.Response:
        self.asked += 1
        body = await request.read()
        if self.failures:
            status = self.failures.pop(0)
            if not status:
                await asyncio.Event().wait()
            return web.Response(status=status, headers={"Location": "/elsewhere"})
        self.bodies.append(body)
        self.headers.append(dict(request.headers))
        return web.Response()


@asynccontextmanager
async def receiving(*failures: int) -> AsyncIterator[Receiver]:
    """A receiver at an address of this machine."""
    receiver, app = Receiver(*failures), web.Application()
    app.add_routes([web.post("/{path:.*}", receiver.take)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        receiver.address = f"127.0.0.1:{runner.addresses[0][1]}"
        yield receiver
    finally:
        await runner.cleanup()
