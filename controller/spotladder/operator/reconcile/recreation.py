"""How often an object that someone deletes is created again.

1. The first time at once. If it is deleted again and again, the pause between two creations doubles from `FIRST_PAUSE`
   to `LONGEST_PAUSE`: a policy engine that removes it must not cost a write for each of its deletions.
2. An object that has stayed for `FORGOTTEN_AFTER` since its last creation counts as never deleted.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from spotladder.backoff import delay
from spotladder.clusters.clock import Clock
from spotladder.core.model import Seconds

K = TypeVar("K", bound=Hashable)

FIRST_PAUSE: Seconds = 10.0
LONGEST_PAUSE: Seconds = 300.0
FORGOTTEN_AFTER: Seconds = 600.0


@dataclass(frozen=True, slots=True)
class _Created:
    times: int
    at: Seconds


class Recreations(Generic[K]):
    """The objects that were created again, by their keys."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[K, _Created] = {}
        """In the order of the last creation."""

    def may_create(self, key: K) -> bool:
        """Whether the object may be created again now."""
        known = self._current(key)
        if known is None:
            return True
        return self._clock.ticks() >= known.at + delay(FIRST_PAUSE, LONGEST_PAUSE, known.times, jitter=1.0)

    def repeated(self, key: K) -> bool:
        """Whether the object was created more than once."""
        known = self._current(key)
        return known is not None and known.times > 1

    def created(self, key: K) -> None:
        """The object was created again."""
        known = self._current(key)
        self._known.pop(key, None)
        self._known[key] = _Created(1 if known is None else known.times + 1, self._clock.ticks())
        while self._current(oldest := next(iter(self._known))) is None:
            del self._known[oldest]

    def _current(self, key: K) -> _Created | None:
        known = self._known.get(key)
        return None if known is None or self._clock.ticks() >= known.at + FORGOTTEN_AFTER else known
