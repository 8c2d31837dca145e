"""Detects that the heartbeats of a program have stopped.

1. A program writes a heartbeat at an interval, which the heartbeat names, while its process lives. Heartbeats of a
   library that names no interval prove nothing.
2. Only changes count, and only the controller's clock: clocks of machines and of the store may differ from it.
3. A read that fails, or that finds no heartbeat, begins again: the store may be away for the program, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.core.model import Seconds

MISSED_BEATS = 3
"""Number of missing heartbeats after which they have stopped."""

SHORTEST_STOP: Seconds = 15.0
"""Minimum time without a new heartbeat after which they have stopped: a write may be retried."""


@dataclass(slots=True)
class Pulse:
    """The newest heartbeat of a program, when it was first read, and when it was last read, in ticks."""

    _newest: StoredHeartbeat | None = None
    _since: Seconds = 0.0
    _until: Seconds = 0.0

    def read(self, found: StoredHeartbeat | None, began: Seconds, ended: Seconds) -> None:
        """Record what a read between these times found; None: no heartbeat, or the read failed."""
        if found is None or not found.every:
            self._newest = None
        elif found != self._newest:
            self._newest, self._since, self._until = found, ended, ended
        else:
            self._until = began

    def has_stopped(self, *, ahead: Seconds = 0.0) -> bool:
        """Whether the heartbeats have stopped, or will have in `ahead` seconds if none comes until then."""
        if self._newest is None:
            return False
        return self._until - self._since >= max(SHORTEST_STOP, MISSED_BEATS * self._newest.every) - ahead
