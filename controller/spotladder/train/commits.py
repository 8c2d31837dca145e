"""One rank's side of a commit: upload in the background, then one append by rank 0 for all ranks."""

from __future__ import annotations

import logging
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.resume import rank_folder
from spotladder.checkpoints.upload import Uploader, upload_folder
from spotladder.errors import Fenced, InvalidSpec, SpotladderError, StoreUnavailable
from spotladder.train.channel import Channel, described, raised
from spotladder.train.ranks import World

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog
    from spotladder.checkpoints.writer import Writer

_log = logging.getLogger("spotladder.train")


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


class Commits:
    """Commits of one process, one at a time and in order. Every rank makes the same ones.

    An error in the background is raised by the next call of `wait` or `submit`; `fenced` is called at once, from the
    background, when a newer writer owns the log.
    """

    def __init__(
        self,
        log: CommitLog,
        writer: Writer | None,
        channel: Channel,
        world: World,
        *,
        keep: int,
        fenced: Callable[[Fenced], None],
    ) -> None:
        self._log = log
        self._writer = writer
        self._channel = channel
        self._world = world
        self._keep = keep
        self._fenced = fenced
        self._count = 0
        self._uploader = Uploader(self._failed)

    @property
    def busy(self) -> bool:
        """Whether a commit is on its way."""
        return self._uploader.busy

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until everything submitted is committed; False after `timeout` seconds. Raises what went wrong."""
        return self._uploader.wait(timeout)

    def check(self) -> None:
        """Raise what went wrong with a commit that is over; never waits."""
        if not self._uploader.busy:
            self._uploader.wait()

    def submit(self, checkpoint: Checkpoint) -> None:
        """Commit in the background. Waits for the commit before, and raises its error instead."""
        number = self._next()
        self._uploader.submit(lambda: self._commit(number, checkpoint))

    def abandon(self, step: int, reason: BaseException) -> None:
        """This rank will not take part in the commit of `step` that the others make: tell them."""
        number = self._next()
        if self._world.size > 1:
            self._uploader.submit(lambda: self._give_up(number, step, reason))

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _commit(self, number: int, checkpoint: Checkpoint) -> None:
        try:
            path = self._agreed_path(number, checkpoint)
            self._exchange(number, self._upload(path, checkpoint), checkpoint, path)
        finally:
            if checkpoint.folder is not None and not checkpoint.keep_folder:
                shutil.rmtree(checkpoint.folder, ignore_errors=True)
        if not checkpoint.last:
            self._collect()

    def _exchange(self, number: int, given: Mapping[str, Any], checkpoint: Checkpoint, path: str) -> None:
        """Give this rank's part; rank 0 appends when it has all of them. Every rank hears what became of it."""
        self._channel.exchange(
            f"commit {number}", given, lambda gifts: self._append(checkpoint, path, [_files(gift) for gift in gifts])
        )

    def _upload(self, path: str, checkpoint: Checkpoint) -> dict[str, Any]:
        """What this rank gives to the commit: its files, or why there are none. The others must hear of a failure."""
        if checkpoint.folder is None:
            return {"files": []}
        alone = self._world.size == 1 or bool(checkpoint.path)
        try:
            below = "" if alone else rank_folder(self._world.rank)
            files = upload_folder(self._log.store, checkpoint.folder, path, below)
        except Exception as error:
            if self._world.size == 1:
                raise
            _log.error("the upload of step %d failed: %s", checkpoint.step, error)
            return {"error": described(error)}
        return {"files": [asdict(file) for file in files]}

    def _append(self, checkpoint: Checkpoint, path: str, files_by_rank: list[list[FileEntry]]) -> int:
        if self._writer is None:
            raise AssertionError("only rank 0 appends")
        files = {file.name: file for files in reversed(files_by_rank) for file in files}
        if checkpoint.path:
            _refuse_collisions(files_by_rank)
        commit = self._writer.commit(
            checkpoint.step, files.values(), total=checkpoint.total, path=path, metrics=checkpoint.metrics
        )
        _log.info("committed step %d of attempt %d (%d bytes)", commit.step, commit.attempt, commit.size)
        return commit.step

    def _collect(self) -> None:
        """Old checkpoints go after every commit. A bucket that is slow to delete is no reason to stop training."""
        if self._writer is None:
            return
        try:
            self._writer.collect(self._keep)
        except StoreUnavailable as error:
            _log.warning("old checkpoints were not deleted: %s", error)

    def _agreed_path(self, number: int, checkpoint: Checkpoint) -> str:
        def decide(steps: list[int]) -> str:
            if len(set(steps)) > 1:
                raise SpotladderError(
                    f"ranks commit different steps {steps}: every rank must call should_commit and commit for the "
                    "same steps"
                )
            if self._writer is None:
                raise AssertionError("only rank 0 decides")
            return checkpoint.path or self._writer.folder(checkpoint.step)

        path: str = self._channel.exchange(f"folder {number}", checkpoint.step, decide)
        return path

    def _give_up(self, number: int, step: int, reason: BaseException) -> None:
        given = {"error": ["SpotladderError", f"rank {self._world.rank} gave up the commit of step {step}: {reason!r}"]}
        try:
            nothing = Checkpoint(step, None)
            self._exchange(number, given, nothing, self._agreed_path(number, nothing))
        except SpotladderError as error:
            _log.info("%s", error)  # this rank has an error of its own to show

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Fenced):
            self._fenced(error)


def _files(gift: Mapping[str, Any]) -> list[FileEntry]:
    if "error" in gift:
        raise raised(gift["error"])
    return [FileEntry(**file) for file in gift["files"]]


def _refuse_collisions(files_by_rank: list[list[FileEntry]]) -> None:
    """Side by side, one name holds one content: it would be a matter of luck which rank's was left."""
    contents = {(file.name, file.size, file.crc) for files in files_by_rank for file in files}
    several = sorted(name for name, count in Counter(name for name, _, _ in contents).items() if count > 1)
    if several:
        raise InvalidSpec(
            f"several ranks report a checkpoint with a file {several[0]!r} of different content: report it from one "
            "rank only, or give it a name with the rank in it"
        )
