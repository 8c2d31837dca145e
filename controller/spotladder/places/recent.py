"""Answers that many pages share, so that a cluster or a bucket is asked once for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The answers of the last `seconds` and the requests in progress, failures included."""

    def __init__(self, seconds: float, ticks: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._ticks = seconds, ticks
        self._kept: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, key: K, read: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """The answer for this key. Raises what `read` raises."""
        now = self._ticks()
        self._kept = {
            each: (began, task)
            for each, (began, task) in self._kept.items()
            if now - began < self._seconds or not task.done()
        }
        if key not in self._kept:
            self._kept[key] = (now, asyncio.create_task(read()))
        return await asyncio.shield(self._kept[key][1])

    def forget(self, key: K) -> None:
        """Read the answer for this key again when it is next asked for."""
        self._kept.pop(key, None)
