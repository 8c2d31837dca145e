"""Checkpoints go to the store in the background: one commit at a time, in order, and no error is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
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


class Uploader:
    """Does one piece of work at a time in a thread of its own.

    `submit` waits while the piece before it is not done: two commits never overlap and never change places, and the
    program can be at most one checkpoint ahead of the store. A piece that failed makes the next call raise its error,
    once. `failed` is called with the error in the background as well, for those who must act at once (Fenced).
    """

    def __init__(self, failed: Callable[[BaseException], None] | None = None) -> None:
        self._failed = failed
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def submit(self, work: Callable[[], object]) -> None:
        """Start `work` in the background. Waits for the piece before it, and raises its error instead."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(work,), name="spotladder-upload", daemon=True)
        self._thread.start()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until nothing is in flight; False after `timeout` seconds. Raises the error of the last piece."""
        if self._thread is not None:
            self._thread.join(timeout)
            if self._thread.is_alive():
                return False
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
        return True

    @property
    def busy(self) -> bool:
        """Whether a piece is in flight."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 – raised again in the caller's thread
            self._error = error
            if self._failed:
                self._failed(error)


def upload_folder(store: Store, folder: Path, path: str, below: str = "") -> tuple[FileEntry, ...]:
    """Upload all files of `folder` to `path` in the store, in parallel; names get `below/` in front of them.

    Returns what to commit. Raises InvalidSpec for a file name that no bucket takes, StoreUnavailable.
    """
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    names = ["/".join(part for part in (below, file.relative_to(folder).as_posix()) if part) for file in files]
    for name in names:
        if not name.isprintable():
            raise InvalidSpec(
                f"{name!r}: buckets take no control characters in file names: rename this checkpoint file"
            )
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
    """Upload a folder and commit it: all that a job of one process needs."""
    files = upload_folder(writer.log.store, folder, writer.folder(step))
    return writer.commit(step, files, total=total, metrics=metrics)


def _upload_file(store: Store, file: Path, path: str, name: str) -> FileEntry:
    for attempt in range(1, TRIES + 1):
        try:
            return replace(store.put_file(f"{path}/{name}", file), name=name)
        except StoreRefused:
            raise
        except StoreUnavailable:
            if attempt == TRIES:
                raise
    raise AssertionError("unreachable")
