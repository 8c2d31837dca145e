"""A rank that finishes the commit of rank 0, which is lost or only cut off from the other ranks.

Both ranks then may append the commit of the same step under the same start. The log accepts one of them:

1. Each appends with put-if-absent after it has read all entries before its own (see `entry_log`). The second therefore
   reads the commit of the first, and appends nothing.
2. They upload to different folders. One object, which only one rank can create, decides which rank may be the
   successor of a commit.
3. A newer start fences both.
4. A successor appends nothing else: it ends no job and deletes no checkpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.history import History
from spotladder.checkpoints.writer import Writer, successor_path
from spotladder.errors import Fenced

_CLAIM = ".claimed-by"


class Successor:
    """The successor of rank 0 of the start with this nonce, for the commit of `step` that rank 0 has begun at `path`.

    Reads the log. Raises Fenced if that start is not the newest, or if the job has ended.
    """

    def __init__(self, log: EntryLog, nonce: str, step: int, path: str) -> None:
        history = log.read()
        start = history.start
        if start is None or start.nonce != nonce:
            raise Fenced(f"{log.uri}: another writer has started after the one of {path}")
        self._writer = _SecondWriter(log, history, start)
        self._log = log
        self._step = step
        self.path = successor_path(path)

    @property
    def recorded(self) -> Commit | None:
        """The commit of this step or a later one, if rank 0 has recorded it after all."""
        return self._writer.recorded(self._writer.history, self._step)

    def claim(self, rank: int) -> bool:
        """Whether this rank is the successor, and not another one. Idempotent. Raises StoreUnavailable."""
        key, mine = f"{self.path}/{_CLAIM}", f"rank {rank}".encode()
        return self._log.store.put_if_absent(key, mine) or self._log.store.get(key) == mine

    def commit(
        self,
        files: Collection[FileEntry],
        *,
        total: int = 0,
        metrics: Mapping[str, Any] | None = None,
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> Commit:
        """Record the checkpoint, whose files have been uploaded to `path`, unless rank 0 has recorded this step.

        Returns the commit that the log has. Raises as `Writer.commit` does.
        """
        return self._writer.commit(self._step, files, total=total, path=self.path, metrics=metrics, seconds=seconds)


class _SecondWriter(Writer):
    """Appends under a start that rank 0 has made."""

    def recorded(self, history: History, step: int) -> Commit | None:
        mine = (commit for commit in history.commits if commit.writer == self.start.nonce)
        return next((commit for commit in mine if commit.step >= step), None)

    def _recorded(self, history: History, step: int, path: str) -> Commit | None:  # noqa: ARG002 – as in the base
        return self.recorded(history, step)
