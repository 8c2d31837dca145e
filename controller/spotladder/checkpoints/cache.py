"""Copies of the newest checkpoint on this machine, so that a restart on the same machine does not download them.

1. The commit log alone decides which commit is the newest. The cache is only asked for files of a commit of the log.
2. A cached file is used only if its size and checksum are those in the commit. Any other file is a miss: this file, and
   only this one, is downloaded.
3. The program gets a link to the cached file (see `cache_links`), or a copy if there can be no link. Cached files are
   read-only. A program that writes to one, as root can, damages this file only: the next restart downloads it. Two
   processes never share a file, so the bytes that a process gets are the verified ones.
4. A checkpoint is copied while it is uploaded. A commit waits for the rest of the copy for at most `COPY_TIMEOUT`; the
   files that are missing then stay missing.
5. The cache holds the newest commit and the checkpoint that is being committed. If both do not fit, it holds the second
   one only, or a part of it.
6. An error of the cache, such as a full disk, is a miss. It never reaches the program.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from io import FileIO
from pathlib import Path
from urllib.parse import quote

from spotladder.checkpoints.cache_links import PREFIX, READ_ONLY, CacheLinks, remove_if_left
from spotladder.checkpoints.disk import CHUNK, read_all
from spotladder.checkpoints.entries import FileEntry

_log = logging.getLogger("spotladder.checkpoints")

COPY_TIMEOUT = 1.0
"""Seconds that a commit waits for the copy after its upload."""

BLOCK = 4096
"""Bytes of a block of the disk. A file or a folder occupies whole blocks."""

MARGIN = 0.01
"""Part of the limit that stays free for what the file system adds: the kubelet evicts a pod whose volume is larger than
its limit."""

_HIDDEN = ".spotladder-"


class NodeCache:
    """The cached files of one job. Several ranks on a machine share them.

    Args:
        folder: The folder for the caches of all jobs on this machine.
        uri: The address of the job's commit log, which identifies the job.
        limit: Maximum size in bytes; None for no limit.
    """

    def __init__(self, folder: Path, uri: str, limit: int | None = None) -> None:
        self._folder = folder.absolute() / sha256(uri.encode()).hexdigest()[:16]
        self._limit = None if limit is None else limit * (1 - MARGIN)
        self._warned = False
        self._held = CacheLinks(self._folder)

    @contextmanager
    def copying(self, folder: Path, path: str, below: str = "") -> Iterator[None]:
        """Copy all files of `folder` while the block uploads them to `path`, with `below/` prepended to their names."""
        cancelled = threading.Event()
        copier = threading.Thread(
            target=self._copy_folder, args=(folder, path, below, cancelled), name="spotladder-cache", daemon=True
        )
        copier.start()
        try:
            yield
            copier.join(COPY_TIMEOUT)
        finally:
            cancelled.set()

    def keep(self, path: str) -> None:
        """Remove everything except the files of the commit at `path`; everything if `path` is empty. Files that a
        process holds stay."""
        try:
            found = sorted(self._folder.iterdir())
        except OSError:
            return  # There is no cache yet.
        for item in found:
            if item.name.startswith(PREFIX):
                if not self._held.owns(item):
                    remove_if_left(item)
            elif item.name != _folder_name(path):
                shutil.rmtree(item, ignore_errors=True)

    def fetch(self, path: str, file: FileEntry, target: Path) -> bool:
        """Link or copy a file of the commit at `path` to `target`, for use until `release`. Returns False if the cache
        does not have exactly this file; the content of `target` is then undefined."""
        source = self._folder / _folder_name(path) / file.name
        target.unlink(missing_ok=True)  # To write through the link of an earlier try would change the cache.
        try:
            held = self._held.link(source)
            if _verified(held or source, file, None if held else target):
                if held:
                    target.symlink_to(held)
                return True
            _log.warning("%s differs from the committed file: downloading the file", source)
            source.unlink(missing_ok=True)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._warn(error)
        return False

    def release(self) -> None:
        """Release the files that `fetch` has linked."""
        self._held.release()

    def _copy_folder(self, folder: Path, path: str, below: str, cancelled: threading.Event) -> None:
        target = self._folder / _folder_name(path) / below
        try:
            for source in sorted(folder.rglob("*")):
                if source.is_file() and not self._copied(source, target / source.relative_to(folder), path, cancelled):
                    break
        except OSError as error:
            if not cancelled.is_set():  # Otherwise the program may have removed its folder.
                self._warn(error)

    def _copied(self, source: Path, target: Path, path: str, cancelled: threading.Event) -> bool:
        """Copy one file. Returns False if it does not fit, or if the copy is cancelled."""
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f"{_HIDDEN}{secrets.token_hex(8)}")
        try:
            with source.open("rb", buffering=0) as reader, hidden.open("xb", buffering=0) as writer:
                # Reserve the size before the check: of two ranks that copy at once, each sees the other's reservation.
                writer.truncate(os.fstat(reader.fileno()).st_size)
                if not self._fits(path):
                    return False
                _copy(reader, writer, cancelled)
                os.fchmod(writer.fileno(), READ_ONLY)
            if not cancelled.is_set():
                hidden.replace(target)
        finally:
            hidden.unlink(missing_ok=True)
        return not cancelled.is_set()

    def _fits(self, path: str) -> bool:
        """Whether the files are within the limit, if need be after the removal of all but those at `path`."""
        if self._limit is None or self._size() <= self._limit:
            return True
        self.keep(path)
        return self._size() <= self._limit

    def _size(self) -> int:
        """Bytes of the disk that the files occupy."""
        sizes: dict[int, int] = {}
        for folder, folders, files in os.walk(self._folder):
            for name in (*folders, *files):
                with suppress(OSError):  # Another rank has removed it meanwhile.
                    status = (Path(folder) / name).lstat()
                    sizes[status.st_ino] = max(BLOCK, -(-status.st_size // BLOCK) * BLOCK)
        return 2 * BLOCK + sum(sizes.values())  # with this folder and the one above it

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            _log.warning("the checkpoint cache in %s is not used: %s", self._folder, error)


def _folder_name(path: str) -> str:
    """One folder for each commit, so that a commit is removed at once."""
    return quote(path, safe="")


def _verified(source: Path, file: FileEntry, target: Path | None) -> bool:
    """Whether the content of `source` is that of `file`; also copies it to `target`."""
    with source.open("rb", buffering=0) as reader:
        if os.fstat(reader.fileno()).st_size != file.size:
            return False
        if target is None:
            return read_all(reader, None) == (file.size, file.crc)
        with target.open("wb", buffering=0) as writer:
            return read_all(reader, writer) == (file.size, file.crc)


def _copy(reader: FileIO, writer: FileIO, cancelled: threading.Event) -> None:
    buffer = memoryview(bytearray(CHUNK))
    while not cancelled.is_set() and (count := reader.readinto(buffer)):
        part = buffer[:count]
        while part:
            part = part[writer.write(part) :]
