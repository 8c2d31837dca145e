"""The heartbeat: the program's progress between two commits, in a file for observers on this machine."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from spotladder.atomic import write_text
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.metrics import metrics_of
from spotladder.core.contract import Milestone
from spotladder.output.outage import Outage
from spotladder.train.stored_heartbeat import HeartbeatWriter

_log = logging.getLogger("spotladder.train")

WRITE_INTERVAL = 1.0
"""Minimum seconds between two heartbeats: a step may take only a millisecond."""

OWN_NAMES = frozenset({"step", "total", "at", "phase", "store", "hang", "workers", "reached"})
"""What the heartbeat itself says. A metric with such a name is left out, because a reader would take it for that."""


@dataclass(slots=True)
class Heartbeat:
    """Writes `{"step", "total", "at", …metrics}` to a file, atomically and at most once a second.

    While the store is unavailable, the file also has `"store": {"since", "message"}`, and while the program hangs
    `"hang"` with a description. Before the first step is done it
    has `"phase"`: "joined" (all ranks are connected, the log is open), "standby" (a standby attempt that waits until it
    takes over) or "first step".

    `stored` writes progress and hangs to the store as well, for a controller on another machine. `start` is the number
    of the log entry with which this group of ranks started.
    An elastic job also has `"workers"`, the number of ranks that it trains with. `"reached"` are the milestones of the
    program's start.

    A failure to write never stops the training. The first one is logged.
    """

    path: Path | None
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    stored: HeartbeatWriter | None = None
    start: int = -1
    workers: int = 0
    reached: dict[Milestone, float] = field(default_factory=dict)
    _next: float = field(default=float("-inf"))
    _at: tuple[int, int] | None = field(default=None)
    _outage: Outage | None = field(default=None)
    _hang: str = field(default="")
    _phase: str = field(default="")
    _failed: bool = field(default=False)
    _metrics: dict[str, object] = field(default_factory=dict)

    def learned(self, metrics: Mapping[str, object]) -> None:
        """Add metrics to every later heartbeat."""
        self._metrics.update({name: value for name, value in metrics_of(metrics).items() if name not in OWN_NAMES})

    def report_outage(self, outage: Outage | None) -> None:
        """Report in every later heartbeat that the store is unavailable, or (None) that it is available."""
        self._outage = outage
        self._write()

    def report_hang(self, hang: str) -> None:
        """Report in every later heartbeat that the program hangs, or ("") that it makes steps again."""
        self._hang = hang
        self._store()
        self._write()

    def reach(self, milestone: Milestone) -> None:
        """Report in every later heartbeat when the program first reached this milestone."""
        if milestone not in self.reached:
            self.reached[milestone] = self.wall()

    def enter(self, phase: str) -> None:
        """Set the phase that the heartbeat reports until the program's next step."""
        self._phase = phase
        self._write()

    def beat(self, step: int, total: int, *, at_once: bool = False) -> None:
        """Record that the program is at `step` of `total` (0 if unknown)."""
        self._at = (step, total)
        self._phase = ""
        self._store()
        now = self.clock()
        if now < self._next and not at_once:
            return
        self._next = now + WRITE_INTERVAL
        self._write()

    def close(self) -> None:
        """Write nothing more to the store."""
        if self.stored is not None:
            self.stored.close()

    def _store(self) -> None:
        if self.stored is not None and self._at is not None:
            step, total = self._at
            self.stored.put(StoredHeartbeat(self.start, step, total, self._hang, reached=dict(self.reached)))

    def _write(self) -> None:
        if self.path is None:
            return
        progress: dict[str, object] = {}
        if self._at is not None:
            progress = {"step": self._at[0], "total": self._at[1]}
        store = {} if self._outage is None else {"store": asdict(self._outage)}
        phase = {"phase": self._phase} if self._phase else {}
        hang = {"hang": self._hang} if self._hang else {}
        size = {"workers": self.workers} if self.workers else {}
        reached = {"reached": self.reached} if self.reached else {}
        facts = {**progress, "at": self.wall(), **phase, **store, **hang, **size, **reached}
        line = json.dumps({**self._metrics, **facts})
        try:
            write_text(self.path, line)
        except OSError as error:
            if not self._failed:
                _log.warning("heartbeats are missing: cannot write %s: %s", self.path, error)
            self._failed = True
