"""A checkpoint of one rank that is not committed yet."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spotladder.errors import SpotladderError
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
    this commit, `unreadable` the reason why the program's folder cannot be read."""

    checkpoint: Checkpoint
    folder: Path | None
    owned: bool
    gave_up: str = ""
    unreadable: str = ""

    def offer(self) -> dict[str, Any]:
        """What the other ranks need to know before they commit the same step."""
        return {"step": self.checkpoint.step, "gave_up": self.gave_up}

    def write(self) -> None:
        """Write the files that the program has left to the commit. Idempotent."""
        writes = self.checkpoint.writes
        while writes:
            writes[0]()
            del writes[0]  # It holds a copy of the state.

    def copied(self) -> tuple[Path, str]:
        """A copy of the files of the program's folder, and why it could not be made ("" if it is complete)."""
        copy = Path(tempfile.mkdtemp(prefix="spotladder-commit-"))
        try:
            if self.folder is not None:
                shutil.copytree(self.folder, copy, dirs_exist_ok=True, ignore_dangling_symlinks=True)
        except OSError as error:
            return copy, str(error)
        return copy, ""

    def release(self) -> None:
        """Remove the files, unless the program owns them."""
        if self.owned and self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def agreed_step(offers: list[dict[str, Any]]) -> int | None:
    """The step that all ranks have; None if ranks with an older checkpoint must wait for a newer one.

    Raises SpotladderError if a rank gave up, or if no rank has dropped a checkpoint that another one holds.
    """
    for rank, offer in enumerate(offers):
        if offer["gave_up"]:
            raise SpotladderError(f"rank {rank} gave up the commit of step {offer['step']}: {offer['gave_up']}")
    steps = [int(offer["step"]) for offer in offers]
    if len(set(steps)) == 1:
        return steps[0]
    if not any(offer["skipped"] for offer in offers):
        raise SpotladderError(
            f"ranks commit different steps {steps}: every rank must call should_commit and commit for the same steps"
        )
    return None
