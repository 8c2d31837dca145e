"""Upload the files of a checkpoint, several in parallel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.store import Store, StoreRefused, taking
from spotladder.checkpoints.writer import Writer
from spotladder.errors import InvalidSpec, StoreUnavailable

FILES_AT_ONCE = 4
TRIES = 3

RETRY_TIMEOUT = 15.0
"""Seconds after which the upload of a file is not retried: longer outages are handled by the caller."""


def files_below(folder: Path) -> list[tuple[str, Path]]:
    """All files of a checkpoint folder, each with its name in the checkpoint, also those behind symbolic links.

    Raises OSError if the folder does not exist or cannot be read.
    """
    found, seen = [], set()
    os.scandir(folder).close()
    for at, inner, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(at)
        if real in seen:
            inner.clear()  # A link to a folder above or beside it.
            continue
        seen.add(real)
        paths = (Path(at, name) for name in files)
        found += [(path.relative_to(folder).as_posix(), path) for path in paths if path.is_file()]
    return sorted(found)


def upload_folder(
    store: Store, folder: Path, path: str, below: str = "", *, without: Collection[str] = (), temporary: bool = False
) -> tuple[FileEntry, ...]:
    """Upload all files of `folder` to `path` in the store, in parallel, except those of the names `without`; `below/`
    is prepended to their names. `temporary`: the files are not written any more and will be removed.

    Returns the entries of the files for the commit. Raises InvalidSpec for a file name that buckets refuse,
    StoreUnavailable.
    """
    found = [(name, file) for name, file in files_below(folder) if name not in without]
    files = [file for _, file in found]
    names = ["/".join(part for part in (below, name) if part) for name, _ in found]
    for name in names:
        if not name.isprintable():
            raise InvalidSpec(f"{name!r}: buckets refuse control characters in file names: rename this checkpoint file")
    put = taking(store) if temporary else store.put_file
    with ThreadPoolExecutor(FILES_AT_ONCE, thread_name_prefix="spotladder-upload") as pool:
        futures = [pool.submit(_upload_file, put, file, path, name) for file, name in zip(files, names, strict=True)]
        try:
            return tuple(future.result() for future in futures)
        except BaseException:
            for future in futures:
                future.cancel()
            raise


def commit_folder(
    writer: Writer, step: int, folder: Path, *, total: int = 0, metrics: Mapping[str, Any] | None = None
) -> Commit:
    """Upload a folder and commit it, for a job of one process."""
    files = upload_folder(writer.log.store, folder, writer.folder(step))
    return writer.commit(step, files, total=total, metrics=metrics)


def _upload_file(put: Callable[[str, Path], FileEntry], file: Path, path: str, name: str) -> FileEntry:
    began = time.monotonic()
    for attempt in range(1, TRIES + 1):
        try:
            return replace(put(f"{path}/{name}", file), name=name)
        except StoreRefused:
            raise
        except StoreUnavailable:
            if attempt == TRIES or time.monotonic() - began > RETRY_TIMEOUT:
                raise
    raise AssertionError("unreachable")
