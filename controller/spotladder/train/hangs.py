"""Detects that a rank hangs and writes its stacks, so that the output of the job shows where it hangs.

Every rank watches only itself. Rank 0 then reports the hang in its heartbeat, later than the other ranks write their
stacks, and the controller ends the attempt. Only a step ends a hang: a program may also evaluate or compile between two
steps, so the time without a step is doubled at each further hang of the job.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

from spotladder.output.stacks import STACKS_FOLLOW

_log = logging.getLogger("spotladder.train")

SHORTEST = 60.0
"""Minimum seconds without a step that count as a hang, if the job has no `hangTimeout`."""

STEPS_MISSED = 10
"""Minimum number of median steps without a step that count as a hang."""

MEASURED = 5
"""Number of steps whose duration is known before the watch begins: the first ones compile and load."""

KEPT_DURATIONS = 101
"""Number of the newest step durations that are kept to compute their median."""

LOOK_INTERVAL = 5.0
"""Maximum seconds between two checks."""

LOOKS_BEFORE_REPORT = 2
"""Number of further checks before rank 0 reports a hang: until then the other ranks write their stacks."""

MAX_DOUBLINGS = 16
"""Maximum number of hangs that double the time without a step: longer than any run."""


def write_stacks() -> None:
    """Write the stacks of all threads to the standard error output of the process."""
    faulthandler.dump_traceback(sys.__stderr__ or 2, all_threads=True)


@dataclass(slots=True)
class StackWatch:
    """`step` records the end of a step, `close` ends the watch, and `pause` interrupts it for a commit. The stacks are
    written once for each time without a step.

    `shortest` is the minimum time without a step that counts as a hang, in seconds, and `hangs` how often the job hung
    before. `report` is called with a description of the hang while it lasts, and with "" when it ends.
    """

    rank: int
    clock: Callable[[], float] = time.monotonic
    write: Callable[[], None] = write_stacks
    shortest: float = SHORTEST
    hangs: int = 0
    report: Callable[[str], None] = lambda _: None
    _durations: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_DURATIONS))
    _last: float | None = None
    _steps: int = 0
    _written: bool = False
    _looks: int = 0
    _reported: bool = False
    _paused_at: float | None = None
    _closed: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def step(self) -> None:
        """Record that the program has made a step, or begins with the first one."""
        now = self.clock()
        if self._last is not None:
            self._durations.append(now - self._last)
            self._steps += 1
        self._last, self._written, self._looks = now, False, 0
        if self._reported:
            self._reported = False
            self.report("")
        if self._thread is None and self._steps >= MEASURED and not self._closed.is_set():
            self._thread = threading.Thread(target=self._watch, name="spotladder-stacks", daemon=True)
            self._thread.start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """The time in this block is not time without a step: a large checkpoint takes long. Blocks may be nested."""
        if self._paused_at is not None:
            yield
            return
        self._paused_at = self.clock()
        try:
            yield
        finally:
            paused, self._paused_at = self.clock() - self._paused_at, None
            if self._last is not None:
                self._last += paused

    def close(self) -> None:
        """End the watch."""
        self._closed.set()

    def look(self) -> bool:
        """Write the stacks if no step was made for long, and later report it. Returns whether they were written."""
        last, durations = self._last, list(self._durations)
        if self._paused_at is not None or last is None or len(durations) < MEASURED:
            return False
        usual, quiet = median(durations), self.clock() - last
        limit = max(self.shortest, STEPS_MISSED * usual) * 2 ** min(self.hangs, MAX_DOUBLINGS)
        if quiet < limit:
            return False
        what = f"no step for {quiet:.0f} s (a step takes {usual:.3g} s)"
        if self._written:
            self._looks += 1
            if self._looks >= LOOKS_BEFORE_REPORT and not self._reported:
                self._reported = True
                self.report(f"{what}; the stacks of its ranks are in their output")
            return False
        self._written = True
        _log.warning("rank %d has made %s: %s", self.rank, what, STACKS_FOLLOW)
        self.write()
        return True

    def _watch(self) -> None:
        while not self._closed.wait(min(LOOK_INTERVAL, self.shortest / 4)):
            try:
                self.look()
            except (OSError, RuntimeError, ValueError) as error:
                _log.info("stacks cannot be written: %r", error)
                return
