"""The records of a job on a cluster, in small objects beside its commit log.

    <uri>/<job>/records/<uid>/00000012.jsonl.gz      the records of one write, one line of JSON each

1. An object is created once and never changed. Its number is the next free one, so of two controllers that write at the
   same time, both are kept. Each job has its own folder: one with the name of a deleted job does not show its records.
2. A folder has at most `MAX_OBJECTS` objects of together `MAX_STORED` bytes: the oldest but the first are deleted. The
   first one has the beginning.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence

from spotladder.checkpoints.store import ObjectMeta, Store, folder_of, listed

FOLDER = "records"

MAX_OBJECTS = 10_000
"""Maximum number of objects of a job: those of a month with a write every five minutes."""

MAX_STORED = 64 * 1024 * 1024
"""Maximum number of bytes of all objects of a job."""

TRIM_INTERVAL = 100
"""Number of writes after which old objects are deleted."""

_KEY = re.compile(r"(\d{8})\.jsonl\.gz")


def of_job(folder: Store, uid: str) -> Store:
    """The part of a job's folder that has its records. `uid` is that of the TieredJob."""
    return folder_of(folder, f"{FOLDER}/{uid}")


def append(store: Store, lines: Sequence[str], after: int | None) -> int:
    """Store these lines as one object, numbered after that of the last write; None: after the newest one. Returns its
    number. Raises StoreUnavailable; then the object may exist, and the same call, with a number, finds it."""
    number = max((number for number, _ in objects_of(store)), default=0) if after is None else after
    data = gzip.compress("".join(f"{line}\n" for line in lines).encode("ascii"), mtime=0)
    while not store.put_if_absent(key := _key(number := number + 1), data) and not _has(store, key, data):
        pass
    if number % TRIM_INTERVAL == 0:
        _trim(store)
    return number


def _has(store: Store, key: str, data: bytes) -> bool:
    """Whether the object has this content: the response to its write was lost."""
    meta = store.head(key)
    return meta is not None and meta.size == len(data) and store.get_many([key]) == [data]


def _trim(store: Store) -> None:
    objects = objects_of(store)
    kept, size = 1, objects[0][1].size if objects else 0
    for _, meta in reversed(objects[1:]):
        size += meta.size
        if kept == MAX_OBJECTS or size > MAX_STORED:
            break
        kept += 1
    if gone := [meta.key for _, meta in objects[1 : len(objects) - kept + 1]]:
        store.delete(gone)


def objects_of(store: Store) -> list[tuple[int, ObjectMeta]]:
    """The objects with their numbers, oldest first."""
    found = [(int(match[1]), meta) for meta in listed(store, "") if (match := _KEY.fullmatch(meta.key))]
    return sorted(found, key=lambda each: each[0])


def _key(number: int) -> str:
    return f"{number:08d}.jsonl.gz"
