"""The records of a job on a cluster, in small objects beside its commit log.

    <uri>/<job>/records/<uid>/00000012.jsonl.gz      the records of one write, one line of JSON each

1. An object is created once and never changed. Its number is the next free one, so of two controllers that write at the
   same time, both are kept. Each job has its own folder: one with the name of a deleted job does not show its records.
2. A folder has at most `MAX_OBJECTS` objects of together `MAX_STORED` bytes: the oldest but the first are deleted. The
   first one has the beginning.
3. What is read back was written by others: sizes are limited, unknown kinds and fields are ignored, and what cannot be
   read is counted or named.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator, Sequence

from spotladder.checkpoints.store import ObjectMeta, Store, folder_of, listed
from spotladder.errors import EnvironmentFailure
from spotladder.records.model import Began, Record, Recorded, decoded

FOLDER = "records"

MAX_OBJECTS = 10_000
"""Maximum number of objects of a job: those of a month with a write every five minutes."""

MAX_STORED = 64 * 1024 * 1024
"""Maximum number of bytes of all objects of a job."""

MAX_OBJECT = 4 * 1024 * 1024
"""Maximum number of bytes of an object that is read."""

MAX_UNPACKED = 32 * 1024 * 1024
"""Maximum number of bytes of an object's lines."""

CHUNK = 256
"""Number of objects that are read at a time."""

ENDS = 4
"""Number of the newest objects of a job that `ends` reads."""

TRIM_INTERVAL = 100
"""Number of writes after which old objects are deleted."""

_KEY = re.compile(r"(\d{8})\.jsonl\.gz")


def of_job(folder: Store, uid: str) -> Store:
    """The part of a job's folder that has its records. `uid` is that of the TieredJob."""
    return folder_of(folder, f"{FOLDER}/{uid}")


def append(store: Store, lines: Sequence[str], after: int | None) -> int:
    """Store these lines as one object, numbered after that of the last write; None: after the newest one. Returns its
    number. Raises StoreUnavailable."""
    number = max((number for number, _ in _objects(store)), default=0) if after is None else after
    data = gzip.compress("".join(f"{line}\n" for line in lines).encode("ascii"), mtime=0)
    while not store.put_if_absent(_key(number := number + 1), data):
        pass
    if number % TRIM_INTERVAL == 0:
        _trim(store)
    return number


def read(store: Store) -> Recorded:
    """All records of the job. Raises EnvironmentFailure if there are none, and StoreUnavailable."""
    objects = _objects(store)
    if not objects:
        raise EnvironmentFailure(
            f"{store.uri}: has no records of the job: the controller writes them after each decision, if its "
            "credentials allow it to write to the bucket"
        )
    records: list[Record] = []
    damaged, gaps = 0, []
    if missing := objects[-1][0] - len(objects):
        gaps.append(f"{missing} of {objects[-1][0]} parts of the record are missing: the oldest are deleted.")
    for where, lines in _contents(store, objects[:1] + objects[1:][-MAX_OBJECTS:]):
        if lines is None:
            gaps.append(f"{where} cannot be read: it is not a gzip file of at most {MAX_UNPACKED:,} bytes.")
            continue
        for record in decoded(lines):
            if record is None:
                damaged += 1
            else:
                records.append(record)
    return Recorded(tuple(records), damaged, tuple(gaps))


def newest_uid(folder: Store) -> str:
    """The uid of the job of this folder that began last. Raises EnvironmentFailure if it has no records, and
    StoreUnavailable."""
    found: dict[str, float] = {}
    for uid in dict.fromkeys(meta.key.partition("/")[0] for meta in listed(folder_of(folder, FOLDER), "")):
        opening = next((record for record in ends(of_job(folder, uid)).records if isinstance(record, Began)), None)
        found[uid] = opening.at if opening else 0.0
    if not found:
        raise EnvironmentFailure(f"{folder.uri}/{FOLDER}: has no records: name the folder of a job")
    return max(found, key=found.__getitem__)


def ends(store: Store) -> Recorded:
    """The first records of a job and its newest ones, which have its spec and its last state. Raises
    StoreUnavailable."""
    objects = _objects(store)
    chosen = objects[:1] + objects[1:][-ENDS:]
    found = [record for _, lines in _contents(store, chosen) for record in decoded(lines or ()) if record is not None]
    return Recorded(tuple(found))


def _contents(store: Store, objects: Sequence[tuple[int, ObjectMeta]]) -> Iterator[tuple[str, list[bytes] | None]]:
    """The address and the lines of each object; None for one that is too large or no gzip file."""
    for start in range(0, len(objects), CHUNK):
        metas = [meta for _, meta in objects[start : start + CHUNK]]
        small = [meta.key for meta in metas if meta.size <= MAX_OBJECT]
        found = dict(zip(small, store.get_many(small), strict=True))
        for meta in metas:
            data = found.get(meta.key, b"")
            if data is not None:  # Otherwise it was deleted meanwhile.
                yield f"{store.uri}/{meta.key}", _lines(data)


def _lines(data: bytes) -> list[bytes] | None:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        text = unpacking.decompress(data, MAX_UNPACKED)
    except zlib.error:
        return None
    return text.splitlines() if unpacking.eof else None


def _trim(store: Store) -> None:
    objects = _objects(store)
    kept, size = 1, objects[0][1].size if objects else 0
    for _, meta in reversed(objects[1:]):
        size += meta.size
        if kept == MAX_OBJECTS or size > MAX_STORED:
            break
        kept += 1
    if gone := [meta.key for _, meta in objects[1 : len(objects) - kept + 1]]:
        store.delete(gone)


def _objects(store: Store) -> list[tuple[int, ObjectMeta]]:
    """The objects with their numbers, oldest first."""
    found = [(int(match[1]), meta) for meta in listed(store, "") if (match := _KEY.fullmatch(meta.key))]
    return sorted(found, key=lambda each: each[0])


def _key(number: int) -> str:
    return f"{number:08d}.jsonl.gz"
