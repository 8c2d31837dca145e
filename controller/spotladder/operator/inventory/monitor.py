"""Monitors whether a member cluster answers. Each cluster has its own circuit breaker and backoff and delays no other
cluster.

1. Up: the monitor sends readiness requests at intervals, and at once after a call without a response. After `FAILURES`
   consecutive requests without a response, the cluster is down.
2. Down: the controller sends no calls. The cached objects are kept and count as unreachable. The monitor sends one
   readiness request after each interval, which doubles.
3. Up again: all caches are relisted before they are used, so that no change is missed and no outdated object is used.
4. A changed connection (a rotated Secret) is used while the cluster stays up. An invalid one is reported as `doubt`,
   and the previous connection is kept while it works.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from typing import Any

import structlog

from spotladder.backoff import delay
from spotladder.clusters.cache import Cache
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock, wait_at_most
from spotladder.clusters.connection import Connection
from spotladder.clusters.errors import ClusterUnreachable, Forbidden, NotFound, Throttled
from spotladder.clusters.registry import ConnectionSource
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError, described

POLL_INTERVAL: Seconds = 5.0
"""Interval between two readiness requests to a cluster that answers."""

ANSWER: Seconds = 5.0
"""Timeout of a readiness request."""

RETRY_INTERVAL: Seconds = 1.0
FAILURES = 3

LISTING: Seconds = 60.0
"""Timeout of the initial list of all kinds."""

FIRST_PAUSE: Seconds = 1.0
LONGEST_PAUSE: Seconds = 30.0


class ClusterMonitor:
    """`run` monitors the cluster until it is cancelled. It calls `changed` whenever the cluster goes down or is up
    again.

    `problem` is why the cluster cannot be used, "" if it can; `doubt` is a problem of a cluster that can be used.
    `known`: whether the cluster has been up or down before.
    """

    def __init__(
        self,
        name: str,
        source: ConnectionSource,
        client: Client,
        caches: Callable[[], list[Cache[Any]]],
        *,
        clock: Clock,
        changed: Callable[[], None],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.problem = "is being connected for the first time"
        self.doubt = ""
        self.known = False
        self._name = name
        self._source = source
        self._client = client
        self._caches = caches
        self._clock = clock
        self._changed = changed
        self._jitter = jitter
        self._connection: Connection | None = None
        self._failures = 0
        self._suspicion = asyncio.Event()
        self._log = structlog.get_logger("spotladder").bind(cluster=name)

    def heard(self, _verb: str, _resource: str, status: int) -> None:
        """Record the HTTP status of every call to the cluster (0: no response)."""
        if status == 0 or status >= 500:
            self._suspicion.set()

    async def run(self) -> None:
        """Connect, list and monitor, in a loop."""
        async with self._client:
            while True:
                try:
                    await self._reach(fresh=self.known)
                    while True:
                        await self._while_up()
                except SpotladderError as error:
                    self._down(str(error))
                except Exception as error:  # noqa: BLE001 – a defect must not end this monitor or the others
                    self._log.exception("a defect")
                    self._down(described(error))
                self._failures += 1
                await self._clock.sleep(delay(FIRST_PAUSE, LONGEST_PAUSE, self._failures, self._jitter()))

    async def _while_up(self) -> None:
        """List all kinds and watch them. Returns when the connection changes; raises when the cluster is lost."""
        listed_by, caches = self._connection, self._caches()
        for cache in caches:
            cache.require_relist()
        running = [asyncio.create_task(cache.run()) for cache in caches]
        async with AsyncExitStack() as ending:
            ending.push_async_callback(_ended, running)
            await self._listed(caches)
            self._up()
            failures = 0
            while True:
                await self._clock.sleep(RETRY_INTERVAL)
                if not failures:
                    await self._rest(POLL_INTERVAL - RETRY_INTERVAL)
                try:
                    await self._reach(fresh=failures > 0)
                    if self._connection is not listed_by:
                        return
                    failures = 0
                except SpotladderError:
                    failures += 1
                    if failures >= FAILURES:
                        raise

    async def _listed(self, caches: list[Cache[Any]]) -> None:
        try:
            async with asyncio.timeout(LISTING):
                await asyncio.gather(*(cache.wait_for_sync() for cache in caches))
        except TimeoutError:
            raise ClusterUnreachable(f"its objects were not listed within {LISTING:g} s") from None
        for cache in caches:
            if cache.silent:
                raise ClusterUnreachable(cache.problem or f"{cache.kind.plural}: no answer")

    async def _reach(self, *, fresh: bool) -> None:
        """Send a readiness request through the current connection."""
        connection, before = await self._asked_for(fresh=fresh), self._connection
        if connection is not before:
            if before is not None and before.server != connection.server:
                self._down("its address has changed")  # It may be another cluster: its cached objects are not valid.
            await self._client.connect(connection)
            self._connection = connection
        with suppress(Throttled, Forbidden, NotFound):  # These are responses too.
            await self._client.ping(ANSWER)

    async def _asked_for(self, *, fresh: bool) -> Connection:
        try:
            connection = await self._source.connection(fresh=fresh)
        except SpotladderError as error:
            if self._connection is None:
                raise
            if self.doubt != str(error):
                self.doubt = str(error)
                self._log.warning("invalid connection; the previous one is used", error=self.doubt)
                self._changed()
            return self._connection
        if self.doubt:
            self.doubt = ""
            self._changed()
        return connection

    async def _rest(self, seconds: Seconds) -> None:
        """Wait for this time, or until a call gets no response."""
        try:
            await wait_at_most(self._clock, seconds, self._suspicion)
        finally:
            self._suspicion.clear()

    def _up(self) -> None:
        if self.problem or not self.known:
            self.problem, self.known = "", True
            self._log.info("cluster is up")
            self._changed()
        self._failures = 0

    def _down(self, why: str) -> None:
        news = not self.known or not self.problem
        self.problem, self.known = why, True
        if news:
            self._log.warning("cluster is down", error=why)
            self._changed()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
