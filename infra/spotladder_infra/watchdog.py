"""Kills the programs of a run (Pulumi, Terraform, their providers, helm, kubectl) when this process ends or is killed.

The programs have a mark in their environment. A watchdog process (`spotladder.local.reaper`) kills every process with
that mark when the run ends or this process dies.
"""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spotladder.local.reaper import Reaper, marked

VARIABLE = "SPOTLADDER_INFRA_RUN"
"""The environment variable that holds the mark."""

INTERRUPT_TIMEOUT = 120.0
"""Seconds that the processes of an interrupted run may take to exit by themselves. A second interrupt ends the wait."""

POLL_INTERVAL = 0.1


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """Start the programs of the run with `environment`. The watchdog removes `folder` after it has killed them."""

    folder: Path
    environment: dict[str, str]

    @property
    def mark(self) -> str:
        """The entry of the environment, as `spotladder.local.reaper.marked` expects it."""
        return f"{VARIABLE}={self.environment[VARIABLE]}"


@contextmanager
def watched() -> Iterator[WatchedRun]:
    """Ensures that no process of the run is left after the block."""
    run = WatchedRun(Path(tempfile.mkdtemp(prefix="spotladder-infra-")), {VARIABLE: uuid.uuid4().hex})
    watchdog = Reaper(run.mark, run.folder)
    try:
        yield run
    finally:
        watchdog.close()


@contextmanager
def watched_until_finished() -> Iterator[WatchedRun]:
    """The same; after Ctrl-C, which a terminal also sends to the programs, they may finish first."""
    with watched() as run:
        try:
            yield run
        except KeyboardInterrupt:
            deadline = time.monotonic() + INTERRUPT_TIMEOUT
            while marked(run.mark) and time.monotonic() < deadline:
                time.sleep(POLL_INTERVAL)
            raise
