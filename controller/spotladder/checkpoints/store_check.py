"""Checks that a store keeps the promises on which the fence of the commit log depends.

1. Of several creates of one object exactly one succeeds, even if they are simultaneous. Without this promise an
   attempt that was cut off is not fenced: it overwrites the log entries of its successor.
2. A created object can be read and listed at once, with its content. Without this promise an attempt resumes from an
   old checkpoint although a newer one is committed.

The check creates probes below `probes/` of the job's folder, which readers of the log ignore, and deletes them, with
those that interrupted checks left. A bucket that has passed has a marker there with the name of the day and of its
endpoint, so that it is checked once a day. A folder of a disk is checked each time: its promises depend on how this
machine has mounted it.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from itertools import islice

from spotladder.checkpoints.store import ObjectMissing, Store, StoreRefused
from spotladder.errors import StoreUnavailable

FOLDER = "probes/"
"""The folder of the probes and markers, below the job's folder."""

CREATORS = 8
"""Number of simultaneous creates of one object."""

TIMEOUT = 60.0
"""Seconds after which a store that has not answered the whole check counts as unavailable."""

SIZE = 64
"""Bytes of a probe."""

MAX_LISTED = 1000
"""Number of objects in the folder of probes that are read from a listing."""

_DAY = 86400.0

_NOT_IMPLEMENTED = re.compile(r"Not ?Implemented", re.I)


class Promise(StrEnum):
    """What the commit log requires of a store."""

    CREATE = "Create"  # a second create of an object fails
    RACE = "Race"  # of simultaneous creates of an object exactly one succeeds
    READ = "Read"  # an object can be read with its content as soon as it is created
    LIST = "List"  # an object is listed with its size as soon as it is created


_CONSEQUENCES = {
    Promise.CREATE: "an attempt that was cut off could overwrite its successor's checkpoints",
    Promise.RACE: "an attempt that was cut off could overwrite its successor's checkpoints",
    Promise.READ: "an attempt could resume from an old checkpoint",
    Promise.LIST: "an attempt could resume from an old checkpoint, or commit beside its successor",
}

_REMEDIES = {
    "s3": (
        "upgrade the server to a release with atomic conditional writes (If-None-Match: MinIO since August 2024, "
        "SeaweedFS since April 2026, Ozone 2.2), or use Amazon S3, Google Cloud Storage or Azure Blob Storage"
    ),
    "file": (
        "mount the file system without a cache of names and attributes (NFS: noac, or actimeo=0), or use a file system "
        "with atomic hard links, NFS or a bucket"
    ),
}
_OTHER_REMEDY = "use another bucket or a folder on NFS"


class StoreUnsafe(StoreRefused):
    """The store breaks a promise that the fence depends on. Nothing may be started with it.

    `found` is what the check observed and what it leads to.
    """

    def __init__(self, message: str, promise: Promise = Promise.CREATE, found: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.promise = promise
        self.found = found
        self.remedy = remedy

    @classmethod
    def of(cls, store: Store, promise: Promise, observed: str) -> StoreUnsafe:
        """The error for this observation, with its consequence and the remedy."""
        remedy = _REMEDIES.get(store.uri.partition("://")[0], _OTHER_REMEDY)
        found = f"{observed}, so {_CONSEQUENCES[promise]}"
        return cls(f"{store.uri}: the store is not safe for checkpoints: {found}: {remedy}", promise, found, remedy)


def check_today(store: Store, clock: Callable[[], float] = time.time) -> None:
    """`check_store`, unless the same endpoint has passed today. Raises what `check_store` raises."""
    marker = f"{FOLDER}{_day(clock())}-passed-{zlib.crc32(store.endpoint.encode()):08x}" if store.endpoint else ""
    # A response to GET, unlike one to HEAD, has the error that tells refused keys from an outage.
    if marker and store.get_many([marker], 1 << 10)[0] is not None:
        return
    check_store(store, clock)
    if marker:
        store.put_if_absent(marker, b"this store has passed the check of spotladder on this day\n")


def check_store(store: Store, clock: Callable[[], float] = time.time, timeout: float = TIMEOUT) -> None:
    """Check, before anything is started, that the store can be written and keeps its promises.

    Leaves no object behind. Raises StoreUnsafe with the promise that the store breaks, StoreUnavailable or StoreRefused
    with a remedy.
    """
    check = _Check(store, clock(), timeout)
    try:
        broken = check.run()
    except StoreRefused:
        raise
    except StoreUnavailable as error:
        if not _NOT_IMPLEMENTED.search(str(error)):
            raise
        raise StoreUnsafe.of(store, Promise.CREATE, "the store does not implement conditional creates") from None
    # A store that keeps every object (a retention policy) keeps the probes, too: no promise depends on it.
    with suppress(StoreUnavailable):
        check.clean()
    if broken is not None:
        raise StoreUnsafe.of(store, *broken)


class _Check:
    """One check, with its own folder of probes."""

    def __init__(self, store: Store, now: float, timeout: float) -> None:
        self._store, self._now, self._timeout = store, now, timeout
        self._ends = time.monotonic() + timeout
        folder = f"{FOLDER}{_day(now)}-{secrets.token_hex(8)}/"
        self._folder, self._first, self._second = folder, f"{folder}created", f"{folder}raced"
        self._contents = [secrets.token_hex(SIZE // 2).encode() for _ in range(2 + CREATORS)]

    def run(self) -> tuple[Promise, str] | None:
        """The first broken promise, and how it showed."""
        store, contents = self._store, self._contents
        store.put_if_absent(self._first, contents[0])  # False if the response to the first of two requests was lost.
        self._in_time()
        if store.put_if_absent(self._first, contents[1]):
            return Promise.CREATE, "a second create of an object succeeds"
        won = self._race(contents[2:])
        if len(won) > 1:
            return Promise.RACE, f"{len(won)} of {CREATORS} simultaneous creates of one object succeed"
        return self._listed() or self._read(self._first, contents[:1]) or self._read(self._second, won or contents[2:])

    def clean(self) -> None:
        """Delete the probes of this check, and probes and markers that are more than a day old."""
        yesterday = _day(self._now - _DAY)
        keys = [meta.key for meta in islice(self._store.list(FOLDER), MAX_LISTED)]
        days = {key: key.removeprefix(FOLDER)[: len(yesterday)] for key in keys}
        old = {key for key, day in days.items() if day.isdigit() and day < yesterday}
        self._store.delete(sorted(old | {self._first, self._second}))

    def _race(self, contents: list[bytes]) -> list[bytes]:
        """The contents whose create succeeded, of creates that begin at the same time in threads."""
        self._in_time()
        together = threading.Barrier(len(contents))
        results: list[bool | Exception | None] = [None] * len(contents)

        def create(number: int, content: bytes) -> None:
            together.wait()
            try:
                results[number] = self._store.put_if_absent(self._second, content)
            except Exception as error:  # noqa: BLE001 – raised to the caller
                results[number] = error

        threads = [threading.Thread(target=create, args=item, daemon=True) for item in enumerate(contents)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, self._ends - time.monotonic()))
        self._in_time()
        for error in results:
            if isinstance(error, Exception):
                raise error
        return [content for content, wins in zip(contents, results, strict=True) if wins]

    def _listed(self) -> tuple[Promise, str] | None:
        self._in_time()
        listed = {meta.key: meta.size for meta in islice(self._store.list(self._folder), MAX_LISTED)}
        for key in (self._first, self._second):
            if key not in listed:
                return Promise.LIST, "an object is not listed after it was created"
            if listed[key] != SIZE:
                found = f"an object of {SIZE} bytes is listed with {listed[key]} bytes after it was created"
                return Promise.LIST, found
        return None

    def _read(self, key: str, expected: list[bytes]) -> tuple[Promise, str] | None:
        self._in_time()
        try:
            data = self._store.get(key, 2 * SIZE)
        except ObjectMissing:
            return Promise.READ, "an object cannot be read after it was created"
        return None if data in expected else (Promise.READ, "an object does not have its content after it was created")

    def _in_time(self) -> None:
        """Raise StoreUnavailable if the store takes too long. Each request has a timeout of its own."""
        if time.monotonic() >= self._ends:
            raise StoreUnavailable(
                f"{self._store.uri}: the check of the store was not finished after {self._timeout:g} s: check the "
                "network and the store"
            )


def _day(at: float) -> str:
    return time.strftime("%Y%m%d", time.gmtime(at))
