"""A clock that a test advances, in place of `SystemClock`."""

from __future__ import annotations

import asyncio
import heapq
import itertools

from spotladder.core.model import Instant, Seconds


class SteppedClock:
    """A clock that a test advances. Sleepers are woken in order of time."""

    def __init__(self, start: Instant = 1_800_000_000.0) -> None:
        self._now = start
        self._ticks = 0.0
        self._order = itertools.count()
        self._sleeping: list[tuple[Seconds, int, asyncio.Future[None]]] = []

    def now(self) -> Instant:
        return self._now

    def ticks(self) -> Seconds:
        return self._ticks

    async def sleep(self, seconds: Seconds) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleeping, (self._ticks + seconds, next(self._order), done))
        await done

    @property
    def sleepers(self) -> int:
        """The number of sleepers on this clock."""
        return sum(1 for *_, done in self._sleeping if not done.done())

    async def advance(self, seconds: Seconds) -> None:
        """Advance the time: every sleeper that is due runs, at its own time, before this returns."""
        await self._run_ready_tasks()
        end = self._ticks + seconds
        while self._sleeping and self._sleeping[0][0] <= end:
            due, _, done = heapq.heappop(self._sleeping)
            self._move_to(due)
            if not done.done():
                done.set_result(None)
                await self._run_ready_tasks()
        self._move_to(end)
        await self._run_ready_tasks()

    def _move_to(self, ticks: Seconds) -> None:
        if ticks > self._ticks:  # Another task may have advanced it meanwhile.
            self._now += ticks - self._ticks
            self._ticks = ticks

    def step_wall(self, seconds: Seconds) -> None:
        """Step the wall clock, as a time server does; ticks are not affected."""
        self._now += seconds

    async def _run_ready_tasks(self) -> None:
        for _ in range(20):  # A woken task may wake another, and so on.
            await asyncio.sleep(0)
