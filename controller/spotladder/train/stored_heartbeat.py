"""Writes the heartbeat of a program on a cluster to the store, in the background: the store may be slow or away.

It is written at a fixed interval while the process lives, even without a new step, so that heartbeats that stop are a
sign of a lost machine and not of a long step.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.store import Store, StoreRefused
from spotladder.errors import SpotladderError

_log = logging.getLogger("spotladder.train")

WRITE_INTERVAL = 5.0
"""Seconds between two writes, except for a hang and its end, which are written at once."""


@dataclass(slots=True)
class HeartbeatWriter:
    """Writes the newest heartbeat of an attempt again and again, never on the caller's thread. If the store refuses
    one, the writer stops."""

    store: Store
    attempt: int
    interval: float = WRITE_INTERVAL
    uid: str = ""
    _newest: StoredHeartbeat | None = None
    _written: StoredHeartbeat | None = None
    _beats: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _closed: bool = False

    def beat(self, start: int, step: int, total: int) -> None:
        """Record that the group of ranks with this start entry has done `step` of `total` steps."""
        self._put(StoredHeartbeat(start, step, total, self._newest.hang if self._newest else ""))

    def report_hang(self, hang: str) -> None:
        """Record that the program hangs, or ("") that it makes steps again."""
        if self._newest is not None:
            self._put(replace(self._newest, hang=hang))

    def close(self) -> None:
        """Stop writing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def write(self) -> bool:
        """Write the newest heartbeat. Returns whether that succeeded; True without a heartbeat."""
        newest = self._newest
        if newest is None:
            return True
        self._beats += 1
        try:
            heartbeat.write(
                self.store, self.attempt, replace(newest, beat=self._beats, every=self.interval, uid=self.uid)
            )
        except StoreRefused as error:
            _log.info("heartbeats are not written: %s", error)
            self._closed = True
        except (SpotladderError, OSError) as error:
            _log.debug("a heartbeat is not written: %s", error)
        else:
            self._written = newest
            return True
        return False

    def _put(self, heartbeat: StoredHeartbeat) -> None:
        with self._changed:
            at_once = heartbeat.hang != (self._newest.hang if self._newest else "")
            self._newest = heartbeat
            if at_once:
                self._changed.notify_all()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._write_on, name="spotladder-heartbeat", daemon=True)
                self._thread.start()

    def _write_on(self) -> None:
        written = True
        while True:
            with self._changed:
                # After a failure, the next write waits for the interval.
                self._changed.wait_for(self._is_due if written else self._is_closed, self.interval)
                if self._closed:
                    return
            written = self.write()

    def _is_closed(self) -> bool:
        return self._closed

    def _is_due(self) -> bool:
        newest, written = self._newest, self._written
        return self._closed or (newest is not None and newest.hang != (written.hang if written else ""))
