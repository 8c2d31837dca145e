"""A limit for the calls of each user."""

from __future__ import annotations

from functools import partial

from spotladder.clusters.clock import Clock
from spotladder.clusters.throttle import Throttle


class Throttles:
    """A throttle for each name that has made calls recently."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._new = partial(Throttle, rate, burst, clock)
        self._kept: dict[str, Throttle] = {}

    def admits(self, name: str) -> bool:
        """Whether this name may make one more call now. An allowed call counts."""
        if name not in self._kept:
            self._kept = {each: throttle for each, throttle in self._kept.items() if not throttle.is_full}
            self._kept[name] = self._new()
        return self._kept[name].admits()
