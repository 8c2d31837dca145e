"""Writes the heartbeat of a program on a cluster to the store, in the background: the store may be slow or unavailable.

It is written at a fixed interval while the process lives, even without a new step, so that heartbeats that stop are a
sign of a lost machine and not of a long step.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field, replace

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.store import Store
from spotladder.errors import SpotladderError

_log = logging.getLogger("spotladder.train")

WRITE_INTERVAL = 5.0
"""Seconds between two writes, except for a hang and its end, which are written at once."""


@dataclass(slots=True)
class HeartbeatWriter:
    """Writes the newest heartbeat of an attempt repeatedly, on a thread of its own, also after the store has refused
    one: expired credentials are replaced, and heartbeats that stop are a sign of a lost machine."""

    store: Store
    attempt: int
    interval: float = WRITE_INTERVAL
    uid: str = ""
    _newest: StoredHeartbeat | None = None
    _hang: str = ""
    _beats: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _thread: threading.Thread | None = None
    _closed: bool = False

    def put(self, heartbeat: StoredHeartbeat) -> None:
        """Replace the newest heartbeat. A hang and its end are written at once."""
        with self._changed:
            self._newest = heartbeat
            if self._hang_changed():
                self._changed.notify_all()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._write_on, name="spotladder-heartbeat", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Stop writing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def write(self) -> None:
        """Write the newest heartbeat. One that is not written is written again after the interval."""
        if self._newest is None:
            return
        self._beats += 1
        newest = replace(self._newest, beat=self._beats, every=self.interval, uid=self.uid)
        self._hang = newest.hang
        try:
            heartbeat.write(self.store, self.attempt, newest)
        except (SpotladderError, OSError) as error:
            _log.debug("a heartbeat is not written: %s", error)

    def _write_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._hang_changed(), self.interval)
                if self._closed:
                    return
            self.write()

    def _hang_changed(self) -> bool:
        return self._newest is not None and self._newest.hang != self._hang
