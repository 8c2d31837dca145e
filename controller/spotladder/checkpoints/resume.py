"""Downloads and verifies the files of a commit."""

from __future__ import annotations

import logging
from collections.abc import Collection
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from spotladder.checkpoints.cache_links import READ_ONLY
from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.rank_folders import rank_of
from spotladder.checkpoints.store import ObjectMissing, Store
from spotladder.errors import CheckpointCorrupt

if TYPE_CHECKING:
    from spotladder.checkpoints.cache import NodeCache

_log = logging.getLogger("spotladder.checkpoints")

FILES_AT_ONCE = 4

PROGRESS_INTERVAL = 10.0
"""Seconds between two log lines about a download."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """A resumed commit. `path` has the files of `commit`. `skipped` maps newer commits that did not verify, newest
    first, to the reason."""

    commit: Commit
    path: Path
    skipped: tuple[tuple[Commit, str], ...] = ()

    @property
    def step(self) -> int:
        """The step of the commit."""
        return self.commit.step


def fetch(
    store: Store,
    commit: Commit,
    folder: Path | None,
    ranks: Collection[int] | None = None,
    cache: NodeCache | None = None,
) -> None:
    """See `CommitLog.fetch`. Without `folder` the files in the store are only read and compared."""
    files = [file for file in commit.files if _wanted(file.name, ranks)]
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        for parent in {(folder / file.name).parent for file in files}:
            parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(FILES_AT_ONCE, thread_name_prefix="spotladder-fetch") as pool:
        largest_first = sorted(files, key=lambda file: -file.size)
        fetches = [pool.submit(_fetch_file, store, commit, file, folder, cache) for file in largest_first]
        try:
            while wait(fetches, PROGRESS_INTERVAL, FIRST_EXCEPTION).not_done:
                done = sum(map(_bytes_read, fetches, largest_first, repeat(folder)))
                _log.info("step %d: %d of %d bytes are read", commit.step, done, sum(file.size for file in files))
            cached = sum(fetch.result() for fetch in fetches)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    if cached:
        _log.info("step %d: %d of %d files from the cache on this machine", commit.step, cached, len(files))


def _fetch_file(store: Store, commit: Commit, file: FileEntry, folder: Path | None, cache: NodeCache | None) -> bool:
    """Link, copy or download one file, and verify it. Returns whether it was in the cache."""
    if cache and folder and cache.fetch(commit.path, file, folder / file.name):
        return True
    key = f"{commit.path}/{file.name}"
    try:
        found = store.get_file(key, folder and folder / file.name)
    except ObjectMissing:
        raise CheckpointCorrupt(f"{store.uri}/{key}: this file of step {commit.step} is missing") from None
    if (found.size, found.crc) != (file.size, file.crc):
        raise CheckpointCorrupt(
            f"{store.uri}/{key}: this file of step {commit.step} differs from the committed file "
            f"({found.size} bytes, checksum {found.crc}; expected {file.size} bytes, checksum {file.crc})"
        )
    if cache and folder:
        (folder / file.name).chmod(READ_ONLY)  # Files from the cache are read-only, too: a program sees no difference.
    return False


def _bytes_read(fetch: Future[bool], file: FileEntry, folder: Path | None) -> int:
    """The bytes of this file that have been read. Raises the error of a failed fetch. Without `folder` a file counts
    once it is complete."""
    if fetch.done():
        fetch.result()
        return file.size
    with suppress(OSError):  # The fetch has not begun.
        return (folder / file.name).stat().st_size if folder else 0
    return 0


def _wanted(name: str, ranks: Collection[int] | None) -> bool:
    return ranks is None or (rank := rank_of(name)) is None or rank in ranks
