"""A token bucket with an average rate in calls per second and a burst."""

from __future__ import annotations

import asyncio

from spotladder.clusters.clock import Clock
from spotladder.core.model import Seconds


class Throttle:
    """`take` waits until a call may be made; callers are served in their order. `rate` is in calls per second."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"expected a rate above 0 and a burst of at least 1, got {rate} and {burst}")
        self._gap = 1.0 / rate
        self._tolerance = (burst - 1) * self._gap
        self._clock = clock
        self._booked_until = float("-inf")

    async def take(self) -> None:
        """Return when one more call may be made. A caller that is cancelled while it waits makes none."""
        if (wait := self._book()) > 0:
            try:
                await self._clock.sleep(wait)
            except asyncio.CancelledError:
                self._booked_until -= self._gap
                raise

    def admits(self) -> bool:
        """Whether one more call may be made now. An allowed call counts."""
        if self._booked_until > self._clock.ticks():
            return False
        self._book()
        return True

    @property
    def is_full(self) -> bool:
        """Whether the whole burst may be made now, as with a new throttle."""
        return self._booked_until <= self._clock.ticks() - self._tolerance

    def _book(self) -> Seconds:
        """Reserve the next slot; returns the seconds until then."""
        now = self._clock.ticks()
        slot = max(self._booked_until, now - self._tolerance)
        self._booked_until = slot + self._gap
        return slot - now
