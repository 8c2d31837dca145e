"""A machine with a cache whose downloads are counted, and ways to damage the cache."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from spotladder.checkpoints import cache as module
from spotladder.checkpoints.cache import BLOCK, NodeCache
from spotladder.checkpoints.cache_links import READ_ONLY
from spotladder.checkpoints.entries import Commit, FileEntry
from spotladder.checkpoints.upload import upload_folder
from tests.checkpoints.builders import a_folder, a_log
from tests.checkpoints.memory_store import MemoryStore


class DownloadCountingStore(MemoryStore):
    """Records the downloads."""

    def __init__(self) -> None:
        super().__init__()
        self.downloads: list[str] = []

    def arrived(self, request: str, key: str) -> None:
        if request == "get_file":
            self.downloads.append(key.rpartition("/")[2])


class CachedMachine:
    """A commit log and a machine with a cache, whose program commits and resumes."""

    def __init__(self, folder: Path, limit: int | None = None) -> None:
        self.folder = folder
        self.store = DownloadCountingStore()
        self.log = a_log(self.store)
        self.cache = NodeCache(folder / "cache", self.log.uri, limit)
        self.log.cache = self.cache
        self.writer = self.log.start(1)

    def upload(self, step: int, **files: bytes) -> tuple[str, tuple[FileEntry, ...]]:
        path = self.writer.folder(step)
        source = a_folder(self.folder / "program", **files)
        try:
            with self.cache.copying(source, path):
                return path, upload_folder(self.log.store, source, path)
        finally:
            shutil.rmtree(source)

    def commit(self, step: int, **files: bytes) -> Commit:
        path, entries = self.upload(step, **files)
        commit = self.writer.commit(step, entries)
        self.cache.keep(path)
        return commit

    def cached(self) -> dict[str, bytes]:
        """The files in the cache, by the last part of their path and of their commit's."""
        files = (path for path in (self.folder / "cache").rglob("*") if path.is_file())
        return {f"{path.parent.name.rpartition('%2F')[2]}/{path.name}": path.read_bytes() for path in files}

    def file(self, name: str) -> Path:
        (path,) = (self.folder / "cache").rglob(name)
        return path

    def resume(self) -> tuple[int, dict[str, bytes]]:
        """The step of the resumed commit and its files."""
        self.store.downloads.clear()
        try:
            with tempfile.TemporaryDirectory(dir=self.folder) as to:
                found = self.log.resume(Path(to))
                assert found
                return found.step, {path.name: path.read_bytes() for path in found.path.iterdir()}
        finally:
            self.log.release()


def blocks(count: int) -> int:
    """A limit for files of `count` blocks, with their folder and the margin."""
    return round((count + 3) * BLOCK / (1 - module.MARGIN)) + 1


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def overwrite(path: Path, content: bytes) -> None:
    """Overwrite a read-only file, as a program that runs as root can."""
    path.chmod(0o600)
    path.write_bytes(content)
    path.chmod(READ_ONLY)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "torn": lambda path: overwrite(path, path.read_bytes()[: path.stat().st_size // 2]),
    "longer": lambda path: overwrite(path, path.read_bytes() + b"x"),
    "empty": lambda path: overwrite(path, b""),
    "other bytes": lambda path: overwrite(path, b"X" * path.stat().st_size),
    "a folder": _directory,
    "a loop": _loop,
}
