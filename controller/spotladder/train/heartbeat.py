"""A sign of life for whoever watches from this machine: how far the program is, between two commits."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spotladder.checkpoints.entries import metrics_of

_log = logging.getLogger("spotladder.train")

SPACING = 1.0
"""Seconds between two writes at least: a step may take a millisecond."""


@dataclass(slots=True)
class Heartbeat:
    """Writes `{"step", "total", "at", …metrics}` to a file, atomically and at most once a second.

    Losing it is never a reason to stop the training: the first failure is logged, and no more is written.
    """

    path: Path | None
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    _next: float = field(default=float("-inf"))
    _metrics: dict[str, object] = field(default_factory=dict)

    def learned(self, metrics: Mapping[str, object]) -> None:
        """Figures that go along with every beat from now on."""
        self._metrics.update(metrics_of(metrics))

    def beat(self, step: int, total: int, *, at_once: bool = False) -> None:
        """The program is at `step` of `total` (0: not known)."""
        if self.path is None:
            return
        now = self.clock()
        if now < self._next and not at_once:
            return
        self._next = now + SPACING
        line = json.dumps({**self._metrics, "step": step, "total": total, "at": self.wall()})
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            draft.write_text(line, encoding="utf-8")
            draft.replace(self.path)
        except OSError as error:
            _log.warning("no heartbeats from here on: %s cannot be written: %s", self.path, error)
            self.path = None
