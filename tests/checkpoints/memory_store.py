"""A store in memory, for tests of code that uses a store. Also the base of the stores that inject faults."""

from __future__ import annotations

import sys
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta, ObjectMissing, Store
from spotladder.errors import TooLarge


class MemoryStore(Store):
    """Tests may read and change `objects`. A subclass with faults, or one that counts, overrides `arrived`."""

    def __init__(self, uri: str = "memory:///") -> None:
        self.uri = uri
        self.objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def arrived(self, request: str, key: str) -> None:
        """A request, before it is executed: `put`, `get`, `head`, `list`, `put_file`, `get_file` or, for each object,
        `delete`. An error that this raises is the answer."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.arrived("put", key)
        with self._lock:
            if key in self.objects:
                return False
            self.objects[key] = data
            return True

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        self.arrived("get", key)
        return self._read(key, most)

    def _read(self, key: str, most: int) -> bytes:
        try:
            data = self.objects[key]
        except KeyError:
            raise ObjectMissing(f"{self.uri}{key}: no such object") from None
        if len(data) > most:
            raise TooLarge(f"{self.uri}{key}", "bytes", len(data), most)
        return data

    def head(self, key: str) -> ObjectMeta | None:
        self.arrived("head", key)
        data = self.objects.get(key)
        return None if data is None else ObjectMeta(key, len(data))

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        self.arrived("list", prefix)
        with self._lock:
            keys = sorted(self.objects)
        for key in keys:
            if key.startswith(prefix) and (after is None or key > after) and key in self.objects:
                yield ObjectMeta(key, len(self.objects[key]))

    def put_file(self, key: str, path: Path) -> FileEntry:
        self.arrived("put_file", key)
        data = path.read_bytes()
        with self._lock:
            self.objects[key] = data
        return file_entry(key, data)

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        self.arrived("get_file", key)
        data = self._read(key, sys.maxsize)
        if path:
            path.write_bytes(data)
        return file_entry(key, data)

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.arrived("delete", key)
            with self._lock:
                self.objects.pop(key, None)


def file_entry(key: str, data: bytes) -> FileEntry:
    """The metadata of an object with these bytes."""
    return FileEntry(key.rpartition("/")[2], len(data), f"{zlib.crc32(data):08x}")
