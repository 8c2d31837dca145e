"""The port to the store of checkpoints and their log, and its errors.

The protocol depends on one primitive: `put_if_absent` atomically creates an object or reports that it exists, so that
of two writers exactly one succeeds. All other operations may be slow, repeated or lost without harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spotladder.checkpoints.entries import LARGEST_ENTRY, FileEntry
from spotladder.errors import SpotladderError, StoreUnavailable, TooLarge


class StoreRefused(StoreUnavailable):
    """Refused request: missing bucket, no permission, read-only, full. Do not retry; the user must act."""


LARGEST_OBJECT = LARGEST_ENTRY
"""Maximum bytes of an object that is read into memory."""

LONGEST_LISTING = 1_000_000
"""Maximum number of objects of one listing; a listing without end is a broken or hostile server's."""


class RightsRefused(StoreRefused):
    """The store refuses the credentials: missing, wrong, expired, or without the permission that the request needs."""


class UploadTorn(StoreUnavailable):
    """The store does not list an uploaded file, or not with its size. Upload the files again, then commit."""


class ObjectMissing(SpotladderError):
    """No object has this key."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """One object of a listing. `key` is relative to the store's address, `size` in bytes."""

    key: str
    size: int


class Store(Protocol):
    """A folder of objects in a bucket or on a disk.

    Every method raises StoreUnavailable if the outcome is unknown or nothing was done, and its subclass StoreRefused
    if the user must act. All methods are thread-safe.
    """

    uri: str
    """The address, without credentials."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Create the object; False if one with that key exists. After an error it may or may not exist."""

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        """The whole object. Raises ObjectMissing, and TooLarge before it reads an object of more than `most` bytes."""

    def get_many(self, keys: Sequence[str], most: int = LARGEST_OBJECT) -> list[bytes | None]:
        """The objects in the order of `keys`, in parallel where that helps; None for one that does not exist. Raises
        TooLarge if one has more than `most` bytes."""
        return [self._get_or_none(key, most) for key in keys]

    def _get_or_none(self, key: str, most: int) -> bytes | None:
        try:
            return self.get(key, most)
        except ObjectMissing:
            return None

    def head(self, key: str) -> ObjectMeta | None:
        """The object's size in bytes; None if it does not exist."""

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        """The objects whose key starts with `prefix` (which ends with "/" or is empty) and is greater than `after`, by
        key."""

    def put_file(self, key: str, path: Path) -> FileEntry:
        """Upload a file, in parts if it is large. The returned entry describes the uploaded bytes, under the last part
        of the key."""

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        """Download to `path` (None: only read), in parallel ranges if the object is large. Raises ObjectMissing."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove the objects; missing ones are not an error."""

    def take_file(self, key: str, path: Path) -> FileEntry:
        """`put_file` of a temporary file that nothing writes any more: the store may keep it instead of a copy."""
        return self.put_file(key, path)

    def folders(self, prefix: str = "") -> Sequence[str]:
        """The names of the folders directly below `prefix`, which is "" or ends with a slash. Their content is not
        listed, unless the store has no other way."""
        keys = (meta.key.removeprefix(prefix) for meta in self.list(prefix))
        return sorted({key.partition("/")[0] for key in keys if "/" in key})

    def renew(self) -> bool:
        """Read the credentials again. False if they cannot change while this process lives."""
        return False

    @property
    def folder(self) -> Path | None:
        """The folder of this machine that has each object as a file; None for a bucket."""
        return None

    @property
    def endpoint(self) -> str:
        """The server of a store that is the same from every machine; "" for a folder of a disk."""
        return ""


def listed(store: Store, prefix: str, after: str | None = None, *, most: int = LONGEST_LISTING) -> Iterator[ObjectMeta]:
    """The store's listing. Raises TooLarge instead of its object number `most` + 1."""
    for number, meta in enumerate(store.list(prefix, after), 1):
        if number > most:
            raise TooLarge(f"{store.uri}/{prefix}", "objects", number, most, "remove what does not belong there")
        yield meta


def folder_of(store: Store, name: str) -> Store:
    """The part of the store below `name/`."""
    return SubStore(store, name.strip("/") + "/") if name.strip("/") else store


class SubStore(Store):
    """A store whose keys are all in one folder of another store."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self.uri = f"{store.uri.rstrip('/')}/{prefix.rstrip('/')}"

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._store.put_if_absent(self._prefix + key, data)

    def get(self, key: str, most: int = LARGEST_OBJECT) -> bytes:
        return self._store.get(self._prefix + key, most)

    def get_many(self, keys: Sequence[str], most: int = LARGEST_OBJECT) -> list[bytes | None]:
        return self._store.get_many([self._prefix + key for key in keys], most)

    def head(self, key: str) -> ObjectMeta | None:
        meta = self._store.head(self._prefix + key)
        return meta and ObjectMeta(key, meta.size)

    def list(self, prefix: str, after: str | None = None) -> Iterator[ObjectMeta]:
        start = None if after is None else self._prefix + after
        for meta in self._store.list(self._prefix + prefix, start):
            yield ObjectMeta(meta.key.removeprefix(self._prefix), meta.size)

    def folders(self, prefix: str = "") -> Sequence[str]:
        return self._store.folders(self._prefix + prefix)

    def put_file(self, key: str, path: Path) -> FileEntry:
        return self._store.put_file(self._prefix + key, path)

    def take_file(self, key: str, path: Path) -> FileEntry:
        return self._store.take_file(self._prefix + key, path)

    def get_file(self, key: str, path: Path | None) -> FileEntry:
        return self._store.get_file(self._prefix + key, path)

    def delete(self, keys: Iterable[str]) -> None:
        self._store.delete([self._prefix + key for key in keys])

    def renew(self) -> bool:
        return self._store.renew()

    @property
    def folder(self) -> Path | None:
        folder = self._store.folder
        return folder and folder / self._prefix

    @property
    def endpoint(self) -> str:
        return self._store.endpoint
