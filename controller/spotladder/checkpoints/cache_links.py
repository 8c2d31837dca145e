"""Hard links to cached files that a program reads, so that a resume from the cache copies no bytes.

1. A link is on the volume of the cache, and a symbolic link in the program's folder names it. It stays readable until
   `release`, even if the cache removes the file.
2. A file has at most one link. Another process of the machine that needs the file copies it, so that no process can
   change bytes that another one has verified.
3. Each process has a folder of its own and holds a lock on it. The system frees the lock when the process dies, and
   the next process of the job removes the folder.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import threading
from contextlib import suppress
from pathlib import Path

PREFIX = ".spotladder-held-"

READ_ONLY = 0o444
"""Mode of the files that a program gets: they may be the files in the cache."""


class CacheLinks:
    """The links of one process. Thread-safe.

    Args:
        folder: The folder of the job's cache.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / f"{PREFIX}{secrets.token_hex(8)}"
        self._descriptor: int | None = None
        self._links: dict[int, Path] = {}
        self._lock = threading.Lock()

    def link(self, source: Path) -> Path | None:
        """A hard link to `source`; None if another process has one or the volume has no hard links: copy the file."""
        with self._lock, suppress(OSError):
            inode = source.lstat().st_ino
            if inode in self._links:
                return self._links[inode]
            if self._descriptor is None:
                self._folder.mkdir(exist_ok=True)
                self._descriptor = _locked(self._folder)
            held = self._folder / secrets.token_hex(8)
            os.link(source, held, follow_symlinks=False)
            if held.lstat().st_nlink == 2:
                self._links[held.lstat().st_ino] = held
                return held
            held.unlink()
        return None

    def release(self) -> None:
        """Remove all links of this process."""
        with self._lock:
            self._links.clear()
            if self._descriptor is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                os.close(self._descriptor)
                self._descriptor = None

    def owns(self, folder: Path) -> bool:
        """Whether `folder` is the folder of this process."""
        return folder == self._folder


def remove_if_left(folder: Path) -> None:
    """Remove the links of a process that has died."""
    with suppress(OSError):
        lock = _locked(folder)
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _locked(folder: Path) -> int:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
