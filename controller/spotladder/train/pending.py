"""A checkpoint of one rank on its way to the commit log."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a rank wants committed. `folder` holds its files; None: this rank has nothing to add.

    `keep_folder`: it is the program's own; else it is removed once it is uploaded. `path`: where the commit goes
    instead of the writer's choice, with the files of all ranks side by side instead of one folder for each rank.
    `last`: the attempt is being drained, so tidying up is left to the next one.
    """

    step: int
    folder: Path | None
    total: int = 0
    metrics: Mapping[str, Any] | None = None
    keep_folder: bool = False
    path: str = ""
    last: bool = False


@dataclass(slots=True, eq=False)
class Pending:
    """A checkpoint until it is committed or let go. `gave_up`: why the program will not take part in this commit."""

    checkpoint: Checkpoint
    folder: Path | None
    owned: bool
    gave_up: str = ""

    def release(self) -> None:
        """Remove the files, unless they are the program's."""
        if self.owned and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
