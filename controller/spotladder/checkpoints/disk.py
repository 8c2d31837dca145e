"""A store in a folder of a local disk or of NFS.

Objects are created atomically: the store writes a hidden file, flushes it to the disk, and then links
(`put_if_absent`: a hard link is the only creation that is atomic on NFS) or renames it. It does not use obstore, whose
local store does not flush a file before it links it, so that a power cut can leave an empty log entry, and does not
report why a disk refuses a write.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from zlib_ng.zlib_ng import crc32, crc32_combine

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta, ObjectMissing, RightsRefused, Store, StoreRefused
from spotladder.errors import SpotladderError, StoreUnavailable, TooLarge

CHUNK = 1 << 20

SLICE = 64 << 20
"""Bytes of a file that one thread reads to verify it: the slices of a large file are read in parallel."""

SLICES_AT_ONCE = 4

_HIDDEN = ".spotladder-"

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM})
_NO_LINKS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EPERM})


class DiskStore(Store):
    """The first write creates the folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self.uri = self._root.as_uri()

    @property
    def folder(self) -> Path:
        return self._root

    def put_if_absent(self, key: str, data: bytes) -> bool:
        target = self._path(key)
        with self._typed("create", key), self._hidden(target) as hidden:
            with hidden.open("xb") as file:
                file.write(data)
                _flush(file.fileno())
            try:
                os.link(hidden, target)
            except FileExistsError:
                return False
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise StoreRefused(
                        f"{self.uri}: this file system has no hard links ({error.strerror}), which the commit log "
                        "needs: use another file system, NFS or a bucket"
                    ) from None
                raise
            _flush_folder(target.parent)
        return True

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        with self._typed("read", key), self._path(key).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= most:
                return file.read(size)
        raise TooLarge(f"{self.uri}/{key}", "bytes", size, most)

    def head(self, key: str) -> ObjectMeta | None:
        try:
            with self._typed("read", key):
                path = self._path(key)
                size = path.stat().st_size
                return None if path.is_dir() else ObjectMeta(key, size)
        except ObjectMissing:
            return None

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        with self._typed("list", prefix):
            found = sorted(self._walk(self._path(prefix.rstrip("/")), prefix), key=lambda meta: meta.key)
        return (meta for meta in found if after is None or meta.key > after)

    def folders(self, prefix: str = "") -> Sequence[str]:
        """The names of the folders directly below, except those that cannot be read."""
        found = []
        with self._typed("list", prefix), suppress(FileNotFoundError):
            for item in os.scandir(self._path(prefix.rstrip("/")) if prefix else self._root):
                with suppress(OSError):  # A link to itself.
                    if item.is_dir():
                        found.append(item.name)
        return sorted(found)

    def put_file(self, key: str, path: Path) -> FileEntry:
        target = self._path(key)
        path.stat()  # A missing file is the caller's mistake, not the store's.
        with self._typed("write", key), self._hidden(target) as hidden:
            size, crc = _copy_durably(path, hidden)
            hidden.replace(target)
            _flush_folder(target.parent)
        return FileEntry(target.name, size, crc)

    def take_file(self, key: str, path: Path) -> FileEntry:
        """On the same file system the object is a link to the file, so that no bytes are copied."""
        target = self._path(key)
        with self._typed("write", key), self._hidden(target) as hidden:
            try:
                os.link(path, hidden, follow_symlinks=False)
            except OSError:
                return self.put_file(key, path)
            status = hidden.lstat()
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 2:  # Another name may change the content.
                return self.put_file(key, path)
            with hidden.open("rb", buffering=0) as file:
                size, crc = _verify(file)
                _flush(file.fileno())
            hidden.replace(target)
            _flush_folder(target.parent)
        return FileEntry(target.name, size, crc)

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        with self._typed("read", key), self._path(key).open("rb", buffering=0) as reader:
            if path is None:
                size, crc = _verify(reader)
            else:
                with path.open("wb", buffering=0) as writer:
                    size, crc = read_all(reader, writer)
        return FileEntry(key.rpartition("/")[2], size, crc)

    def delete(self, keys: Iterable[str]) -> None:
        folders: set[Path] = set()
        for key in keys:
            path = self._path(key)
            with self._typed("delete", key):
                path.unlink(missing_ok=True)
            folders.add(path.parent)
        for folder in sorted(folders, reverse=True):
            self._prune(folder)

    def _path(self, key: str) -> Path:
        return self._root / key if key else self._root

    def _walk(self, folder: Path, prefix: str) -> Iterator[ObjectMeta]:
        try:
            items = list(os.scandir(folder))
        except FileNotFoundError:
            return
        for item in items:
            with suppress(FileNotFoundError):  # Another process has deleted it meanwhile.
                if item.is_dir():
                    yield from self._walk(folder / item.name, f"{prefix}{item.name}/")
                elif not item.name.startswith(_HIDDEN):
                    yield ObjectMeta(prefix + item.name, item.stat().st_size)

    def _prune(self, folder: Path) -> None:
        with suppress(OSError):  # The folder is not empty or does not exist: both are fine.
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent

    @contextmanager
    def _hidden(self, target: Path) -> Iterator[Path]:
        """A temporary name beside the target that listings omit; a file that remains under it is removed."""
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.parent / f"{_HIDDEN}{secrets.token_hex(8)}"
        try:
            yield hidden
        finally:
            with suppress(OSError):
                hidden.unlink(missing_ok=True)

    @contextmanager
    def _typed(self, doing: str, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failure(doing, key, error) from error

    def _failure(self, doing: str, key: str, error: OSError) -> SpotladderError:
        what = f"{self.uri}/{key}"
        if isinstance(error, FileNotFoundError | NotADirectoryError) and doing == "read":
            return ObjectMissing(f"{what}: no such object")
        if isinstance(error, IsADirectoryError) and doing == "read":
            return ObjectMissing(f"{what}: is a folder, not a file")
        if error.errno in _FULL:
            return StoreRefused(f"cannot {doing} {what}: the disk is full: free space or use another checkpoint folder")
        if error.errno == errno.EROFS:
            return StoreRefused(f"cannot {doing} {what}: the file system is read-only: use another checkpoint folder")
        if error.errno in _FORBIDDEN:
            return RightsRefused(
                f"cannot {doing} {what}: permission denied: grant this user access or use another folder"
            )
        if isinstance(error, NotADirectoryError | IsADirectoryError | FileExistsError):
            return StoreRefused(
                f"cannot {doing} {what}: a file has the name of a required folder: use another checkpoint folder"
            )
        return StoreUnavailable(f"cannot {doing} {what}: {error.strerror or error}: check the disk or the mount")


def _copy_durably(source: Path, target: Path) -> tuple[int, str]:
    """Copy a file and flush it to the disk, reading each byte once. Returns the bytes and the checksum of the copy."""
    with source.open("rb", buffering=0) as reader, target.open("xb", buffering=0) as writer:
        found = read_all(reader, writer)
        _flush(writer.fileno())
    return found


def read_all(reader: FileIO, writer: FileIO | None) -> tuple[int, str]:
    """Read a file to its end; also copies it if there is a `writer`. Returns the number of bytes and the checksum."""
    size, crc = 0, 0
    buffer = memoryview(bytearray(CHUNK))
    while count := reader.readinto(buffer):
        part = buffer[:count]
        crc = crc32(part, crc)
        size += count
        while writer and part:
            part = part[writer.write(part) :]
    return size, f"{crc:08x}"


def _verify(reader: FileIO) -> tuple[int, str]:
    """Read a file, its slices in parallel. Returns the number of bytes and the checksum."""

    def read(begin: int) -> tuple[int, int]:
        size, crc = 0, 0
        buffer = memoryview(bytearray(CHUNK))
        while count := os.preadv(reader.fileno(), [buffer[: SLICE - size]], begin + size):
            crc = crc32(buffer[:count], crc)
            size += count
        return size, crc

    length = os.fstat(reader.fileno()).st_size
    if length <= SLICE:
        return read_all(reader, None)
    size, crc = 0, 0
    with ThreadPoolExecutor(SLICES_AT_ONCE, thread_name_prefix="spotladder-verify") as pool:
        for part, part_crc in pool.map(read, range(0, length, SLICE)):
            size, crc = size + part, crc32_combine(crc, part_crc, part)
    return size, f"{crc:08x}"


def _flush(descriptor: int) -> None:
    os.fsync(descriptor)


def _flush_folder(folder: Path) -> None:
    """Make the new name durable (fsync of the folder). Network file systems without fsync of folders do not need it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
