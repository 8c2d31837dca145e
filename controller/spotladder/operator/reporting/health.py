"""`/healthz`, `/readyz` and `/metrics` over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from spotladder.errors import EnvironmentFailure
from spotladder.operator.reporting.metrics import Metrics

LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Health:
    """`cause` is why the process is not healthy, "" if it is; `state` is its current activity."""

    state: str
    cause: str = ""


class HealthServer:
    """Use as `async with HealthServer(…)`. Calls `ready` at each request for it."""

    def __init__(self, address: str, *, metrics: Metrics, ready: Callable[[], Health]) -> None:
        host, separator, port = address.rpartition(":")
        if not separator or not port.isdecimal() or len(port) > 5 or int(port) > LAST_PORT:
            raise EnvironmentFailure(f"listen {address}: expected HOST:PORT, such as 127.0.0.1:8080")
        self._host, self._port = host.strip("[]"), int(port)
        self._metrics = metrics
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", _respond(lambda: Health("alive"))),
                web.get("/readyz", _respond(ready)),
                web.get("/metrics", self._show_metrics),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)

    @property
    def port(self) -> int:
        """The port in use, for servers that were started with port 0."""
        addresses = self._runner.addresses
        return int(addresses[0][1]) if addresses else self._port

    async def __aenter__(self) -> HealthServer:
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as error:
            await self._runner.cleanup()
            raise EnvironmentFailure(
                f"listen {self._host}:{self._port}: {error.strerror}: use another address"
            ) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _respond(ask: Callable[[], Health]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_request: web.Request) -> web.Response:
        health = ask()
        text = f"{health.state}: {health.cause}\n" if health.cause else f"{health.state}\n"
        return web.Response(text=text, status=503 if health.cause else 200)

    return answer
