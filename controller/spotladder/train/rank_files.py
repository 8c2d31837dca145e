"""The files of one rank in a commit: their upload, and the list of the files of all ranks."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.rank_folders import rank_folder
from spotladder.checkpoints.upload import upload_folder
from spotladder.errors import InvalidSpec
from spotladder.train.rank_errors import described, raised

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog
    from spotladder.train.pending import Pending
    from spotladder.train.ranks import ProcessRank
    from spotladder.train.store_retry import StoreRetry

_log = logging.getLogger("spotladder.train")


def upload_files(
    log: CommitLog,
    pending: Pending,
    path: str,
    *,
    world: ProcessRank,
    retry: StoreRetry,
    without: Collection[str] = (),
) -> dict[str, Any]:
    """This rank's part of the commit: its files, or the error of its upload, which the other ranks must know.

    Of replicated state only rank 0 uploads its files. Other ranks upload the files `without`. A folder of the program
    that cannot be read is no error: the commit is dropped."""
    step = pending.checkpoint.step
    alone = world.size == 1 or bool(pending.checkpoint.path) or pending.checkpoint.replicated
    below = "" if alone else rank_folder(world.rank)
    while True:
        folder = pending.folder
        if pending.unreadable:
            return {"dropped": pending.unreadable}
        if folder is None or (pending.checkpoint.replicated and world.rank > 0):
            return {"files": []}
        try:
            if retry.outage is not None:
                next(iter(log.store.list(f"{path}/")), None)  # Fails sooner than an upload.
            pending.write()
            with log.cache.copying(folder, path, below) if log.cache else nullcontext():
                files = upload_folder(log.store, folder, path, below, without=without, temporary=pending.owned)
        except Exception as error:
            if folder != pending.folder:
                continue  # The program has removed its folder since; its files were copied before.
            if retry.waits_for(error):
                return {"away": str(error)}
            if pending.checkpoint.keep_folder and isinstance(error, OSError | InvalidSpec):
                return {"dropped": f"rank {world.rank}: {error}"}
            if world.size == 1:
                raise
            _log.error("the upload of step %d failed: %s", step, error)
            return {"error": described(error)}
        if folder == pending.folder:
            return {"files": [asdict(file) for file in files]}


def files_of(part: Mapping[str, Any]) -> list[FileEntry]:
    """The files of a rank's part. Raises the error of its upload."""
    if "error" in part:
        raise raised(part["error"])
    return [FileEntry(**file) for file in part["files"]]


def joined(files_by_rank: list[list[FileEntry]]) -> Collection[FileEntry]:
    """The files of all ranks, each once."""
    return {file.name: file for files in reversed(files_by_rank) for file in files}.values()
