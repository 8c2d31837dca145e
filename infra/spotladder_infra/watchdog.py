"""Programs that do not outlive this process, not even after SIGKILL: Pulumi, Terraform, their providers, helm, kubectl.

They carry a mark in their environment. When this process ends, a watchdog (`spotladder.local.reaper`) kills every
process with that mark.
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
"""The environment variable with the mark."""


@dataclass(frozen=True, slots=True)
class Run:
    """Processes are started with `environment`. `folder` is removed with them."""

    folder: Path
    environment: dict[str, str]

    @property
    def mark(self) -> str:
        """The entry of the environment, as `spotladder.local.reaper.marked` expects it."""
        return f"{VARIABLE}={self.environment[VARIABLE]}"


@contextmanager
def watched(hold: int | None = None) -> Iterator[Run]:
    """No process of the run is left after the block. The watchdog keeps the descriptor `hold` open until then."""
    run = Run(Path(tempfile.mkdtemp(prefix="spotladder-infra-")), {VARIABLE: uuid.uuid4().hex})
    watchdog = Reaper(run.mark, run.folder, hold)
    try:
        yield run
    finally:
        watchdog.close()
