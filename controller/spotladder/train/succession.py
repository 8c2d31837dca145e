"""Finish a commit of replicated state without rank 0.

1. Rank 0 announces its files before it uploads them. A rank whose program has written the same files (the same names:
   the state is equal) can store its own instead.
2. If the connection to rank 0 ends before rank 0 has answered for the commit, these ranks claim it in the store. The
   first one uploads its files and appends the commit under rank 0's start. The others do nothing.
3. Rank 0 may be only cut off. The log then accepts its commit or that of the successor (see `checkpoints.successor`).
4. Nothing is committed if a newer start has fenced rank 0's, or if rank 0 was lost before it announced its files.
   After the loss of a third rank, rank 0 finishes the commit alone: if it is lost then, nobody does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spotladder.checkpoints.successor import Successor
from spotladder.checkpoints.upload import files_below, upload_folder
from spotladder.checkpoints.writer import Writer
from spotladder.train.channel import Channel
from spotladder.train.interruption import RankLost

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog
    from spotladder.train.pending import Checkpoint, Pending
    from spotladder.train.ranks import ProcessRank
    from spotladder.train.store_retry import StoreRetry

_log = logging.getLogger("spotladder.train")

_BEGUN = "begun"
"""What rank 0 announces: the commit that it has begun, its start in the log, and its files."""


class Succession:
    """One rank's part in the commits that another rank than rank 0 may finish."""

    def __init__(self, log: CommitLog, channel: Channel, world: ProcessRank, retry: StoreRetry) -> None:
        self._log = log
        self._channel = channel
        self._rank = world.rank
        self._retry = retry

    def begin(self, writer: Writer | None, path: str, pending: Pending) -> None:
        """On rank 0, when the files of the commit at `path` are written: let another rank finish it from now on."""
        if writer is not None and pending.checkpoint.replicated and pending.folder is not None:
            begun = {"path": path, "start": writer.start.nonce, "files": _names(pending.folder)}
            self._channel.announce(_BEGUN, begun)

    def finish(self, pending: Pending, path: str, seconds: Callable[[], float]) -> str:
        """On another rank, when rank 0 is lost: finish the commit at `path` that rank 0 has begun.

        Returns the folder of the commit that the log has for this step; "" if this rank cannot finish it. Waits while
        the store is unavailable.
        """
        folder = pending.folder
        if folder is None or not pending.checkpoint.replicated:
            return ""
        try:
            begun = self._channel.announced(_BEGUN)
            pending.write()
            if (begun["path"], begun["files"]) != (path, _names(folder)):
                return ""
            return self._retry.until_answered(lambda: self._stored(pending.checkpoint, begun, folder, seconds))
        except RankLost:
            return ""
        except Exception as error:  # noqa: BLE001 – the program gets the loss of rank 0, as without this try
            step = pending.checkpoint.step
            _log.warning("rank %d cannot finish the commit of step %d: %s", self._rank, step, error)
            return ""

    def _stored(self, checkpoint: Checkpoint, begun: dict[str, Any], folder: Path, seconds: Callable[[], float]) -> str:
        successor = Successor(self._log, begun["start"], checkpoint.step, begun["path"])
        if successor.recorded is not None:
            return successor.recorded.path
        if not successor.claim(self._rank):
            return ""
        _log.warning("rank 0 is lost: rank %d finishes the commit of step %d", self._rank, checkpoint.step)
        with self._log.cache.copying(folder, successor.path) if self._log.cache else nullcontext():
            files = upload_folder(self._log.store, folder, successor.path)
        return successor.commit(files, total=checkpoint.total, metrics=checkpoint.metrics, seconds=seconds).path


def _names(folder: Path) -> str:
    """A checksum of the names of all files: a checkpoint may have thousands."""
    names = [name for name, _ in files_below(folder)]
    return sha256("\0".join(names).encode()).hexdigest()
