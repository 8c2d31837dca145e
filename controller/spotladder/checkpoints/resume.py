"""Downloads and verifies the files of a commit; uses an older commit if the files do not verify."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spotladder.checkpoints.cache_links import READ_ONLY
from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.store import ObjectMissing, Store, StoreRefused
from spotladder.errors import CheckpointCorrupt, StoreUnavailable

if TYPE_CHECKING:
    from spotladder.checkpoints.cache import NodeCache

_log = logging.getLogger("spotladder.checkpoints")

FILES_AT_ONCE = 4
TRIES = 3

_RANK = re.compile(r"rank-(\d+)/")


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


def rank_folder(rank: int) -> str:
    """The folder inside a commit for files that only this rank needs."""
    return f"rank-{rank:04d}"


def resume(
    log: EntryLog,
    folder: Path,
    ranks: Collection[int] | None = None,
    without: Mapping[str, str] | None = None,
    cache: NodeCache | None = None,
    *,
    verify_only: bool = False,
) -> Resumed | None:
    """See `CommitLog.resume`."""
    corrupt = dict(without or {})
    while True:
        commits = log.commits()
        good = [commit for commit in commits if commit.path not in corrupt]
        if not commits:
            return None
        if not good:
            raise CheckpointCorrupt(
                f"{log.uri}: none of the {len(commits)} commits verifies (newest: {corrupt[commits[-1].path]}): "
                "restore the files from the bucket's versions or a backup, or start in a new checkpoint folder"
            )
        commit = good[-1]
        target = folder / Path(commit.path).name
        try:
            fetch(log.store, commit, None if verify_only else target, ranks, cache)
        except CheckpointCorrupt as error:
            shutil.rmtree(target, ignore_errors=True)
            if any(commit.path == other.path for other in log.commits()):  # Otherwise it was deleted meanwhile.
                corrupt[commit.path] = str(error)
            continue
        skipped = [(other, corrupt[other.path]) for other in reversed(commits) if other.seq > commit.seq]
        return Resumed(commit, target, tuple(skipped))


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
        futures = [pool.submit(_fetch_file, store, commit, file, folder, cache) for file in largest_first]
        try:
            cached = sum(future.result() for future in futures)
        except BaseException:
            for future in futures:
                future.cancel()
            raise
    if cached:
        _log.info("step %d: %d of %d files from the cache on this machine", commit.step, cached, len(files))


def _fetch_file(store: Store, commit: Commit, file: FileEntry, folder: Path | None, cache: NodeCache | None) -> bool:
    """Link, copy or download one file, and verify it. Returns whether it was in the cache."""
    if cache and folder and cache.fetch(commit.path, file, folder / file.name):
        return True
    key = f"{commit.path}/{file.name}"
    for attempt in range(1, TRIES + 1):
        try:
            found = store.get_file(key, folder and folder / file.name)
            break
        except ObjectMissing:
            raise CheckpointCorrupt(f"{store.uri}/{key}: this file of step {commit.step} is missing") from None
        except StoreRefused:
            raise
        except StoreUnavailable:
            if attempt == TRIES:
                raise
    if (found.size, found.crc) != (file.size, file.crc):
        raise CheckpointCorrupt(
            f"{store.uri}/{key}: this file of step {commit.step} differs from the committed file "
            f"({found.size} bytes, checksum {found.crc}; expected {file.size} bytes, checksum {file.crc})"
        )
    if cache and folder:
        (folder / file.name).chmod(READ_ONLY)  # Files from the cache are read-only, too: a program sees no difference.
    return False


def rank_of(name: str) -> int | None:
    """The rank in whose folder this file of a commit is; None outside of such a folder."""
    match = _RANK.match(name)
    return int(match[1]) if match else None


def _wanted(name: str, ranks: Collection[int] | None) -> bool:
    return ranks is None or (rank := rank_of(name)) is None or rank in ranks
