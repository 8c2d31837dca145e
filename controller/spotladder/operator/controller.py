"""The controller process: waits for the lease, works while it leads, and stops gracefully on request."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Coroutine
from typing import Any

import structlog

from spotladder.api.capacitytier import HOME
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock, SystemClock
from spotladder.clusters.connection import connect
from spotladder.clusters.election import Election, NotLeading
from spotladder.clusters.registry import sources
from spotladder.clusters.throttle import Throttle
from spotladder.core.model import Seconds
from spotladder.operator.leader import LeaderRuntime
from spotladder.operator.reporting.health import Health, HealthServer
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.settings import Settings

STOP: Seconds = 3.0
"""Maximum time for pending work when the process stops."""


class Controller:
    """One controller process. `run` returns after a request to stop."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._metrics = Metrics(self._clock)
        self._log = structlog.get_logger("spotladder")
        self.identity = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        self._leader: LeaderRuntime | None = None
        self._standing: Election | None = None
        self._connection = connect(settings.kubeconfig, settings.context)
        self._namespace = settings.lease_namespace or self._connection.namespace
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Request a graceful stop."""
        self._stopping.set()

    async def run(self) -> None:
        """Lead whenever the lease is available, until stopped."""
        for name in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(name, self.stop)
        async with (
            HealthServer(self._settings.listen, metrics=self._metrics, ready=self._ready) as health,
            Client(self._connection, clock=self._clock, watcher=self._metrics.watcher(HOME)) as plain,
        ):
            election = self._standing = Election(
                plain,
                namespace=self._namespace,
                name=self._settings.lease_name,
                identity=self.identity,
                clock=self._clock,
            )
            self._log.info("started", identity=self.identity, server=self._connection.server, port=health.port)
            while not self._stopping.is_set():
                if await self._unless_stopped(election.lead()):
                    self._log.info("leading", identity=self.identity)
                    await self._unless_stopped(self._term(election))
                    self._log.info("not leading", identity=self.identity)
            await election.release()
        self._log.info("stopped", identity=self.identity)

    async def _term(self, election: Election) -> None:
        """Work while this process leads."""
        self._metrics.leading.set(1)
        async with Client(
            self._connection,
            clock=self._clock,
            throttle=Throttle(self._settings.calls_per_second, self._settings.burst, self._clock),
            guard=election.fence,
            watcher=self._metrics.watcher(HOME),
        ) as client:
            self._leader = LeaderRuntime(
                client=client,
                sources=sources(self._settings.clusters, home=client, namespace=self._namespace, clock=self._clock),
                settings=self._settings,
                metrics=self._metrics,
                clock=self._clock,
                identity=self.identity,
            )
            working = asyncio.create_task(self._leader.run())
            keeping = asyncio.create_task(election.keep())
            try:
                await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
                if working.done():
                    try:
                        working.result()
                    except* NotLeading as lost:
                        self._log.warning(
                            "a write was attempted after the lease was lost", error=str(lost.exceptions[0])
                        )
            finally:
                self._leader = None
                for task in (working, keeping):
                    task.cancel()
                await asyncio.wait({working, keeping}, timeout=STOP)
                self._metrics.term_over()

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run it unless the process is stopped first; returns whether it finished."""
        doing = asyncio.create_task(work)
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not doing.done():
            doing.cancel()
            await asyncio.wait({doing}, timeout=STOP)
            return False
        doing.result()
        return True

    def _ready(self) -> Health:
        if self._leader is not None:
            return self._leader.health
        return Health("standing by", self._standing.problem if self._standing else "")
