"""Deletes the checkpoints that the log no longer needs, and those that were uploaded and never committed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from spotladder.errors import StoreUnavailable, TooLarge
from spotladder.train.pending import Checkpoint

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog
    from spotladder.checkpoints.writer import Writer

_log = logging.getLogger("spotladder.train")


class OldCheckpoints:
    """Keeps the newest `keep` commits of a job."""

    def __init__(self, log: CommitLog, keep: int) -> None:
        self._log = log
        self._keep = keep
        self._orphans: list[str] = []

    def add_orphan(self, path: str) -> None:
        """A folder with files of this process that no commit uses."""
        self._orphans.append(path)

    def collect(self, writer: Writer, checkpoint: Checkpoint) -> None:
        """Delete old checkpoints after every commit. After the commit of the last step, also delete the newest
        checkpoint of each attempt.

        An error of a deletion is logged and does not stop the training.
        """
        try:
            while self._orphans:
                self._log.store.delete([meta.key for meta in self._log.store.list(f"{self._orphans[-1]}/")])
                self._orphans.pop()
            writer.collect(self._keep, final=0 < checkpoint.total <= checkpoint.step)
        except (StoreUnavailable, TooLarge) as error:
            _log.warning("old checkpoints were not deleted: %s", error)
