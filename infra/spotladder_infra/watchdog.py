"""Kills the programs of a run (Pulumi, Terraform, their providers, helm, kubectl) when this process ends or is killed.

The programs have a mark in their environment. A watchdog process (`spotladder.local.reaper`) kills every process with
that mark when the run ends or this process dies.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spotladder.local.reaper import Reaper

VARIABLE = "SPOTLADDER_INFRA_RUN"
"""The environment variable that holds the mark."""


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
def watched(hold: int | None = None) -> Iterator[WatchedRun]:
    """Ensures that no process of the run is left after the block.

    Args:
        hold: A file descriptor that the watchdog keeps open until all processes have exited.
    """
    run = WatchedRun(Path(tempfile.mkdtemp(prefix="spotladder-infra-")), {VARIABLE: uuid.uuid4().hex})
    watchdog = Reaper(run.mark, run.folder, hold)
    try:
        yield run
    finally:
        watchdog.close()
