"""Stores that break a promise on which the fence of the commit log depends."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from spotladder.checkpoints.store import LARGEST_OBJECT, ObjectMeta, ObjectMissing
from spotladder.errors import StoreUnavailable
from tests.checkpoints.memory_store import MemoryStore


class Ignores(MemoryStore):
    """Every create succeeds and overwrites the object."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.objects[key] = data
        return True


class Races(MemoryStore):
    """The condition is checked before the object is written, so simultaneous creates all succeed."""

    def __init__(self, at_once: int) -> None:
        super().__init__()
        self._checked = threading.Barrier(at_once)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if key in self.objects:
            return False
        if key.endswith("/raced"):
            self._checked.wait(10)
        self.objects[key] = data
        return True


class ReadsLate(MemoryStore):
    """A created object cannot be read at first."""

    def arrived(self, request: str, key: str) -> None:
        if request == "get":
            raise ObjectMissing(f"{key}: no such object")


class ReadsOld(MemoryStore):
    """A read returns the content that a cache has kept."""

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        return b"0" * len(super().get(key, most))


class ListsLate(MemoryStore):
    """A created object is not listed at first."""

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        return iter(())


class LosesBodies(MemoryStore):
    """A create succeeds, and the object is empty."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return super().put_if_absent(key, b"")


class LosesObjects(MemoryStore):
    """A create succeeds, and there is no object."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if key in self.objects:
            return False
        self.objects[key] = b""
        return True

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        return iter(())


class DoesNotImplement(MemoryStore):
    """A conditional create is answered with 501."""

    def arrived(self, request: str, key: str) -> None:
        if request == "put":
            raise StoreUnavailable(f"cannot create {key}: the server answers 501 Not Implemented: check the network")


class HangsInRaces(MemoryStore):
    """A simultaneous create is not answered."""

    def __init__(self) -> None:
        super().__init__()
        self.released = threading.Event()

    def arrived(self, request: str, key: str) -> None:
        if request == "put" and key.endswith("/raced"):
            self.released.wait()
