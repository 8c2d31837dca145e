"""The operator's clock, injected everywhere, so that tests step it instead of waiting."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Any, Protocol

from spotladder.core.model import Instant, Seconds


class Clock(Protocol):
    """The wall clock for recorded times, ticks for durations."""

    def now(self) -> Instant:
        """Seconds since the Unix epoch; may step."""

    def ticks(self) -> Seconds:
        """Seconds since an arbitrary start; never steps back, and continues while the process is stopped."""

    async def sleep(self, seconds: Seconds) -> None:
        """Return when this much time has passed by `ticks`."""


# CLOCK_MONOTONIC stops while the machine is suspended, but a lease does not.
_TICKING = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """The machine's own clock."""

    def now(self) -> Instant:
        return time.time()

    def ticks(self) -> Seconds:
        return time.clock_gettime(_TICKING)

    async def sleep(self, seconds: Seconds) -> None:
        await asyncio.sleep(seconds)


class CorrectedClock:
    """A clock whose wall time is wrong by `correction` seconds."""

    def __init__(self, clock: Clock, correction: Callable[[], Seconds]) -> None:
        self._clock = clock
        self._correction = correction
        self.ticks = clock.ticks
        self.sleep = clock.sleep

    def now(self) -> Instant:
        return self._clock.now() + self._correction()


async def wait_at_most(clock: Clock, seconds: Seconds, *events: asyncio.Event) -> None:
    """Return when one of the events is set or after `seconds`; `math.inf` sets no limit."""
    tasks: set[asyncio.Task[Any]] = {asyncio.create_task(event.wait()) for event in events}
    if seconds < math.inf:
        tasks.add(asyncio.create_task(clock.sleep(seconds)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
