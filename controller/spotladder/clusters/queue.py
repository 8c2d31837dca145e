"""The work queue: keys to look at, each at most once at a time.

1. A key that is added while it waits is there once; added while it is worked on, it comes again afterwards. So no
   change is missed and no key is ever worked on by two.
2. `add_at` asks for a later look: the earliest one that was asked for stands.
3. A key whose pass failed comes back after a pause that doubles, with jitter, up to a limit; success forgets it. What
   happens to a key in the meantime does not cut its pause short: an object that fails and is changed all the time must
   not keep everybody busy.
4. A throttle bounds how many passes begin per second in all.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from spotladder.backoff import delay
from spotladder.clusters.clock import Clock, wait_at_most
from spotladder.clusters.throttle import Throttle
from spotladder.core.model import Seconds

K = TypeVar("K", bound=Hashable)

FIRST_PAUSE: Seconds = 0.1
LONGEST_PAUSE: Seconds = 60.0


class Queue(Generic[K]):
    """Use `get` … `done` in each worker, and run `run` beside them: it wakes keys whose time has come."""

    def __init__(
        self, clock: Clock, *, throttle: Throttle | None = None, jitter: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._throttle = throttle
        self._jitter = jitter
        self._order = itertools.count()
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._timers: list[tuple[Seconds, int, K]] = []
        self._due: dict[K, Seconds] = {}
        self._failures: dict[K, int] = {}
        self._paused: dict[K, Seconds] = {}
        self._something = asyncio.Event()
        self._timer_set = asyncio.Event()

    def add(self, key: K) -> None:
        """Look at this key as soon as possible."""
        if key in self._working:
            self._again.add(key)
            return
        until = self._paused.get(key)
        if until is not None and until > self._clock.ticks():
            self._schedule(key, until)
            return
        if key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._something.set()

    def add_at(self, key: K, after: Seconds) -> None:
        """Look at this key in so many seconds at the latest."""
        if after <= 0:
            self.add(key)
        else:
            self._schedule(key, self._clock.ticks() + after)

    async def get(self) -> K:
        """The next key; it is this worker's until `done`.

        Others have their turn first: a pass may find everything as it should be and wait for nothing, and thousands of
        those in a row would hold up the lease, the watches and whoever asks whether we are alive.
        """
        await asyncio.sleep(0)
        if self._throttle:
            await self._throttle.take()
        while not self._ready:
            self._something.clear()
            await self._something.wait()
        key = self._ready.popleft()
        self._waiting.discard(key)
        self._working.add(key)
        return key

    def done(self, key: K, *, failed: bool = False) -> None:
        """The pass over this key has ended."""
        self._working.discard(key)
        again = key in self._again
        self._again.discard(key)
        if failed:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            pause = delay(FIRST_PAUSE, LONGEST_PAUSE, count, self._jitter())
            self._paused[key] = self._clock.ticks() + pause
            self._schedule(key, self._paused[key])
            return
        self._failures.pop(key, None)
        self._paused.pop(key, None)
        if again:
            self.add(key)

    def forget(self, key: K) -> None:
        """The key's object is gone: no timer brings it back."""
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._paused.pop(key, None)

    async def run(self) -> None:
        """Wake keys when their time comes, for ever."""
        while True:
            self._timer_set.clear()
            now = self._clock.ticks()
            while self._timers and self._timers[0][0] <= now:
                at, _, key = heapq.heappop(self._timers)
                if self._due.get(key) == at:
                    del self._due[key]
                    self.add(key)
            await wait_at_most(self._clock, self._timers[0][0] - now if self._timers else math.inf, self._timer_set)

    @property
    def depth(self) -> int:
        """Keys that wait for a worker now."""
        return len(self._ready)

    @property
    def busy(self) -> bool:
        """Whether a key waits or is worked on."""
        return bool(self._ready or self._working)

    def failures(self, key: K) -> int:
        """How many passes over the key have failed since the last that did not."""
        return self._failures.get(key, 0)

    def _schedule(self, key: K, at: Seconds) -> None:
        due = self._due.get(key)
        if due is not None and due <= at:
            return
        self._due[key] = at
        heapq.heappush(self._timers, (at, next(self._order), key))
        self._timer_set.set()
