"""A checkpoint of one rank that is not committed yet."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spotladder.train.writing import Write


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that a rank submits for commit. `folder` has its files; None if this rank adds no files.

    `keep_folder`: the folder is the program's own; otherwise it is removed after the upload. `path`: the commit's
    folder in the store, with the files of all ranks side by side; None lets the writer choose a path with one folder
    for each rank. `last`: the attempt is being drained, so the next attempt deletes old checkpoints. `replicated`: all
    ranks have the same state, and rank 0's files are all of it; the other ranks have no folder. `written_in` is how
    long the program took to write the files, in seconds. `writes` add the other files; they are called once, before the
    upload.
    """

    step: int
    folder: Path | None
    total: int = 0
    metrics: Mapping[str, Any] | None = None
    keep_folder: bool = False
    path: str = ""
    last: bool = False
    replicated: bool = False
    written_in: float = 0.0
    writes: list[Write] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Pending:
    """A checkpoint until it is committed or dropped. `gave_up` is the reason why the program does not take part in
    this commit."""

    checkpoint: Checkpoint
    folder: Path | None
    owned: bool
    gave_up: str = ""

    def write(self) -> None:
        """Write the files that the program has left to the commit. Idempotent."""
        writes = self.checkpoint.writes
        while writes:
            writes[0]()
            del writes[0]  # It holds a copy of the state.

    def release(self) -> None:
        """Remove the files, unless the program owns them."""
        if self.owned and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
