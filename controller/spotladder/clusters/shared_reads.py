"""Responses that many jobs or pages need at the same time: each is requested once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from spotladder.clusters.clock import Clock
from spotladder.core.model import Seconds

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SharedReads(Generic[K, V]):
    """Values by key, each kept until `ttl(value)` seconds after its read began. While a value is being read, all
    callers wait for the same read, so that a start with thousands of jobs costs one call for each key.

    A read that fails raises for everyone who waits for it, and is not kept.
    """

    def __init__(self, clock: Clock, ttl: Callable[[V], Seconds]) -> None:
        self._clock = clock
        self._ttl = ttl
        self._reads: dict[K, tuple[Seconds, asyncio.Task[V]]] = {}
        self._running: set[asyncio.Task[V]] = set()
        self._most = 0

    async def get(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The value that is kept, or else the result of `read`, which continues if this caller is cancelled."""
        return await asyncio.shield(self.begun(key, read))

    def begun(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> asyncio.Task[V]:
        """The read whose value is kept or that runs, or else a new one."""
        known = self._reads.get(key)
        if known is None or not self._is_current(*known):
            if len(self._reads) > self._most:
                self._reads = {each: begun for each, begun in self._reads.items() if self._is_current(*begun)}
                self._most = 2 * len(self._reads)  # so that a sweep costs each read the same, however many are kept
            known = self._reads[key] = self._clock.ticks(), asyncio.create_task(read())
            self._running.add(known[1])
            known[1].add_done_callback(self._ended)
        return known[1]

    def forget(self, key: K) -> None:
        """Read this value again when it is next needed. A read that runs serves only the callers that wait for it
        already."""
        self._reads.pop(key, None)

    async def aclose(self) -> None:
        """Cancel the reads that run."""
        reads = list(self._running)
        for read in reads:
            read.cancel()
        await asyncio.gather(*reads, return_exceptions=True)

    def _ended(self, read: asyncio.Task[V]) -> None:
        self._running.discard(read)
        if not read.cancelled():
            read.exception()  # Marks it as read: no caller may wait for it any more.

    def _is_current(self, began: Seconds, read: asyncio.Task[V]) -> bool:
        if not read.done():
            return True
        if read.cancelled() or read.exception():
            return False
        return self._clock.ticks() - began < self._ttl(read.result())
