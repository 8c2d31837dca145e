"""The workqueue: keys to reconcile, each by at most one worker at a time.

1. A key that is added while it waits is queued once; a key that is added while it is reconciled is queued again
   afterwards. So no change is missed and no two workers reconcile the same key.
2. `add_changed` waits for the changes of the same key within `WINDOW` of the first, and delays none of them longer.
   `add` and an earlier time of `add_at` do not wait. While the queue is crowded, a key that was processed just now
   waits for `CROWDED_WINDOW` after that: most of its changes are effects of that reconcile.
3. `add_at` requeues a key with a delay; the earliest requested time applies.
4. A key whose reconcile failed is requeued after a backoff that doubles, with jitter, up to a limit; a success resets
   it. Events do not shorten the backoff: an object that fails and changes all the time must not occupy the workers.
5. A throttle limits the total number of reconciles per second.
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

WINDOW: Seconds = 0.05
"""Delay from the first change of a key until it is queued, so that the changes until then are processed together: pods
of an attempt start and end at the same time."""

CROWDED_WINDOW: Seconds = 1.0
"""Delay after its last processing for which a key waits for further changes while the queue is crowded."""

CROWD = 8
"""The number of keys in processing at which the queue is crowded, even if no key waits for a worker."""

MAX_SUPERSEDED = 64
"""Maximum number by which superseded timers may exceed valid ones before the queue drops them."""


class Queue(Generic[K]):
    """Use `get` … `done` in each worker, and run `run` beside them, which queues keys that are due. The event `idle`
    is set while no key waits, for a worker or for further changes, or is reconciled."""

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
        self._again: dict[K, Seconds] = {}
        self._changed: set[K] = set()
        self._timers: list[tuple[Seconds, int, K]] = []
        self._due: dict[K, Seconds] = {}
        self._failures: dict[K, int] = {}
        self._paused: dict[K, Seconds] = {}
        self._done_at: dict[K, Seconds] = {}
        self.idle = asyncio.Event()
        self.idle.set()
        self._something = asyncio.Event()
        self._timer_set = asyncio.Event()

    def add(self, key: K) -> None:
        """Queue this key as soon as possible."""
        if key in self._working:
            self._again[key] = self._clock.ticks()
            return
        if key in self._changed:
            self._changed.discard(key)
            self._due.pop(key, None)
        until = self._paused.get(key)
        if until is not None and until > self._clock.ticks():
            self._schedule(key, until)
            return
        if key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self.idle.clear()
            self._something.set()

    def add_changed(self, key: K) -> None:
        """Queue this key, which has changed, `WINDOW` after the first change since it was processed, or
        later while the queue is crowded."""
        now = self._clock.ticks()
        at = now + WINDOW
        if self._ready or len(self._working) >= CROWD:
            at = max(at, (now if key in self._working else self._done_at.get(key, -math.inf)) + CROWDED_WINDOW)
        if key in self._working:
            self._again.setdefault(key, at)
        elif key in self._paused:
            self.add(key)
        else:
            self._wait_for_changes(key, at)

    def add_at(self, key: K, after: Seconds) -> None:
        """Queue this key in at most this many seconds."""
        if after <= 0:
            self.add(key)
        else:
            self._schedule(key, self._clock.ticks() + after)

    async def get(self) -> K:
        """The next key, which no other worker gets until `done`.

        Yields to other tasks first: a reconcile may finish without any wait, and thousands of these in a row would
        delay the lease, the watches and the health endpoint.
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
        """The reconcile of this key has ended."""
        self._working.discard(key)
        self._note_done(key)
        again = self._again.pop(key, None)
        if failed:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            pause = delay(FIRST_PAUSE, LONGEST_PAUSE, count, self._jitter())
            self._paused[key] = self._clock.ticks() + pause
            self._schedule(key, self._paused[key])
        else:
            self._failures.pop(key, None)
            self._paused.pop(key, None)
            if again is not None:
                self._wait_for_changes(key, again)
        if not self.busy:
            self.idle.set()

    def forget(self, key: K) -> None:
        """The key's object is gone: drop its timers and failures. A change while the key is processed is not dropped:
        there may be a new object of this name."""
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._paused.pop(key, None)
        self._changed.discard(key)
        if not self.busy:
            self.idle.set()

    async def run(self) -> None:
        """Queue keys when they are due, until cancelled."""
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
        """The number of keys that wait for a worker."""
        return len(self._ready)

    @property
    def busy(self) -> bool:
        """Whether a key waits, for a worker or for further changes, or is being reconciled."""
        return bool(self._ready or self._working or self._changed)

    def failures(self, key: K) -> int:
        """The number of failed reconciles of the key since its last success."""
        return self._failures.get(key, 0)

    def _note_done(self, key: K) -> None:
        now = self._clock.ticks()
        self._done_at.pop(key, None)
        self._done_at[key] = now  # The last entry, so that the oldest is the first.
        while self._done_at[oldest := next(iter(self._done_at))] + CROWDED_WINDOW < now:
            del self._done_at[oldest]

    def _wait_for_changes(self, key: K, until: Seconds) -> None:
        """Queue the key at that time, unless it is queued earlier."""
        if until <= self._clock.ticks():
            self.add(key)
        elif key not in self._waiting:
            self._changed.add(key)
            self.idle.clear()
            self._schedule(key, until)

    def _schedule(self, key: K, at: Seconds) -> None:
        due = self._due.get(key)
        if due is not None and due <= at:
            return
        self._due[key] = at
        heapq.heappush(self._timers, (at, next(self._order), key))
        if len(self._timers) > 2 * len(self._due) + MAX_SUPERSEDED:
            self._timers = [timer for timer in self._timers if self._due.get(timer[2]) == timer[0]]
            heapq.heapify(self._timers)
        self._timer_set.set()
