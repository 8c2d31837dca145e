"""Writes the stacks of a rank that makes no step for long, so that the output of a job that hangs shows where.

Every rank watches only itself, and nothing ends: `stallTimeout` ends an attempt that does not commit, but a program may
also evaluate or compile between two steps for longer than all steps so far took.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

_log = logging.getLogger("spotladder.train")

SHORTEST = 60.0
"""Minimum seconds without a step before the stacks are written."""

STEPS_MISSED = 10
"""Number of median steps without a step before the stacks are written."""

MEASURED = 5
"""Number of steps whose duration is known before the watch begins: the first ones compile and load."""

REMEMBERED = 101
"""Number of durations of which the median is taken, the newest ones."""

LOOK_INTERVAL = 5.0
"""Seconds between two checks."""


def write_stacks() -> None:
    """Write the stacks of all threads to the standard error output of the process."""
    faulthandler.dump_traceback(sys.__stderr__ or 2, all_threads=True)


@dataclass(slots=True)
class StackWatch:
    """`step` records the end of a step, `close` ends the watch. The stacks are written once for each time without a
    step."""

    rank: int
    clock: Callable[[], float] = time.monotonic
    write: Callable[[], None] = write_stacks
    _durations: deque[float] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _last: float | None = None
    _steps: int = 0
    _written: bool = False
    _closed: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def step(self) -> None:
        """Record that the program has made a step, or begins with the first one."""
        now = self.clock()
        if self._last is not None:
            self._durations.append(now - self._last)
            self._steps += 1
        self._last, self._written = now, False
        if self._thread is None and self._steps >= MEASURED and not self._closed.is_set():
            self._thread = threading.Thread(target=self._watch, name="spotladder-stacks", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the watch."""
        self._closed.set()

    def look(self) -> bool:
        """Write the stacks if no step was made for long. Returns whether they were written."""
        last, durations = self._last, list(self._durations)
        if self._written or last is None or len(durations) < MEASURED:
            return False
        usual, quiet = median(durations), self.clock() - last
        if quiet < max(SHORTEST, STEPS_MISSED * usual):
            return False
        self._written = True
        _log.warning(
            "rank %d has made no step for %.0f s (a step takes %.3g s): the stacks of its threads follow",
            self.rank,
            quiet,
            usual,
        )
        self.write()
        return True

    def _watch(self) -> None:
        while not self._closed.wait(LOOK_INTERVAL):
            try:
                self.look()
            except (OSError, RuntimeError, ValueError) as error:
                _log.info("stacks cannot be written: %r", error)
                return
