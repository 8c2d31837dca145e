"""Upload the files of a checkpoint, several in parallel."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.store import Store, StoreRefused
from spotladder.checkpoints.writer import Writer
from spotladder.errors import InvalidSpec, StoreUnavailable

FILES_AT_ONCE = 4
TRIES = 3

RETRY_TIMEOUT = 15.0
"""Seconds after which the upload of a file is not retried: longer outages are handled by the caller."""


def upload_folder(store: Store, folder: Path, path: str, below: str = "") -> tuple[FileEntry, ...]:
    """Upload all files of `folder` to `path` in the store, in parallel; `below/` is prepended to their names.

    Returns the entries of the files for the commit. Raises InvalidSpec for a file name that buckets refuse,
    StoreUnavailable.
    """
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    names = ["/".join(part for part in (below, file.relative_to(folder).as_posix()) if part) for file in files]
    for name in names:
        if not name.isprintable():
            raise InvalidSpec(f"{name!r}: buckets refuse control characters in file names: rename this checkpoint file")
    with ThreadPoolExecutor(FILES_AT_ONCE, thread_name_prefix="spotladder-upload") as pool:
        futures = [pool.submit(_upload_file, store, file, path, name) for file, name in zip(files, names, strict=True)]
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


def _upload_file(store: Store, file: Path, path: str, name: str) -> FileEntry:
    began = time.monotonic()
    for attempt in range(1, TRIES + 1):
        try:
            return replace(store.put_file(f"{path}/{name}", file), name=name)
        except StoreRefused:
            raise
        except StoreUnavailable:
            if attempt == TRIES or time.monotonic() - began > RETRY_TIMEOUT:
                raise
    raise AssertionError("unreachable")
