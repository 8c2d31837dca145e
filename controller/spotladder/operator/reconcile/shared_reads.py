"""Responses of API servers that many jobs need at the same time: each is requested once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from spotladder.clusters.clock import Clock
from spotladder.core.model import Seconds

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedReads(Generic[K, V]):
    """Values by key, kept for `ttl(value)` seconds. While a value is being read, all callers wait for the same read, so
    that a start with thousands of jobs costs one call for each key.

    A read that fails raises for everyone who waits for it, and is not kept.
    """

    def __init__(self, clock: Clock, ttl: Callable[[V], Seconds]) -> None:
        self._clock = clock
        self._ttl = ttl
        self._values: dict[K, tuple[Seconds, V]] = {}
        self._reads: dict[K, asyncio.Task[V]] = {}
        self._running: set[asyncio.Task[V]] = set()
        self._swept_at: Seconds = clock.ticks()
        self._longest: Seconds = 0.0

    async def get(self, key: K, read: Callable[[], Awaitable[V]]) -> V:
        """The value that is kept, or else the result of `read`, which runs on if this caller is cancelled."""
        kept = self._values.get(key)
        if kept is not None and self._clock.ticks() < kept[0]:
            return kept[1]
        running = self._reads.get(key)
        if running is None:
            running = self._reads[key] = asyncio.create_task(self._read(key, read))
            self._running.add(running)
            running.add_done_callback(self._running.discard)
        return await asyncio.shield(running)

    def forget(self, key: K) -> None:
        """Read this value again when it is next needed. A read that runs serves only the callers that wait for it
        already."""
        self._values.pop(key, None)
        self._reads.pop(key, None)

    async def aclose(self) -> None:
        """Cancel the reads that run."""
        reads = list(self._running)
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)

    async def _read(self, key: K, read: Callable[[], Awaitable[V]]) -> V:
        try:
            value = await read()
        finally:
            if current := self._reads.get(key) is asyncio.current_task():
                del self._reads[key]
        if not current:
            return value
        ttl, now = self._ttl(value), self._clock.ticks()
        self._values[key] = now + ttl, value
        self._longest = max(self._longest, ttl)
        if now - self._swept_at >= self._longest:
            self._values = {name: kept for name, kept in self._values.items() if now < kept[0]}
            self._swept_at = now
        return value
