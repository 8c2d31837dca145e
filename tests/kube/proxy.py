"""A proxy between the operator and the API server that speaks plain HTTP and injects faults."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace

import aiohttp
from aiohttp import web

from spotladder.clusters.connection import Connection


class Proxy:
    """`delay` is the seconds for each request; `passed` are the responses: method, path, query and status."""

    def __init__(self, target: str) -> None:
        self._target = target
        self.delay = 0.0
        self.passed: list[tuple[str, str, dict[str, str], int]] = []
        self._open = asyncio.Event()
        self._open.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def of(self, connection: Connection) -> Connection:
        return replace(connection, server=self.url, tls=None)

    async def start(self) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0))
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self.cut()
        await self._session.close()
        await self._runner.cleanup()

    async def cut(self) -> None:
        """Break every connection, and accept no new one."""
        self._open.clear()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def mend(self) -> None:
        self._open.set()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            if not self._open.is_set():
                raise web.HTTPServiceUnavailable
            return await self._forward(request)
        except (aiohttp.ClientError, asyncio.CancelledError):
            if request.transport:
                request.transport.abort()
            raise
        finally:
            self._tasks.discard(task)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if self.delay:
            await asyncio.sleep(self.delay)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in ("host", "connection")}
        async with self._session.request(
            request.method, self._target + request.raw_path, headers=headers, data=await request.read() or None,
            timeout=aiohttp.ClientTimeout(total=None), skip_auto_headers=["Accept-Encoding"],
        ) as answer:  # fmt: skip
            self.passed.append((request.method, request.path, dict(request.query), answer.status))
            passed = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await passed.prepare(request)
            async for chunk in answer.content.iter_any():
                await passed.write(chunk)
            await passed.write_eof()
            return passed
