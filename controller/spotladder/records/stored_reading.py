"""What `stored` wrote, read back.

It was written by others: sizes are limited, unknown kinds and fields are ignored, and what cannot be read is counted or
named.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

from spotladder.checkpoints.store import ObjectMeta, Store, folder_of, listed
from spotladder.errors import EnvironmentFailure
from spotladder.records.model import Record
from spotladder.records.recorded import Recorded, decoded
from spotladder.records.stored import FOLDER, MAX_OBJECTS, objects_of, of_job

MAX_OBJECT = 4 * 1024 * 1024
"""Maximum number of bytes of an object that is read."""

MAX_UNPACKED = 32 * 1024 * 1024
"""Maximum number of bytes of an object's lines."""

CHUNK = 256
"""Number of objects that are read at a time."""

ENDS = 4
"""Number of the newest objects of a job that `ends` reads."""


def read(store: Store) -> Recorded:
    """All records of the job. Raises EnvironmentFailure if there are none, and StoreUnavailable."""
    objects = objects_of(store)
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
        found[uid] = next((record.at for record in ends(of_job(folder, uid)).records), 0.0)
    if not found:
        raise EnvironmentFailure(f"{folder.uri}/{FOLDER}: has no records: name the folder of a job")
    return max(found, key=found.__getitem__)


def ends(store: Store) -> Recorded:
    """The first records of a job and its newest ones, which have its spec and its last state. Raises
    StoreUnavailable."""
    objects = objects_of(store)
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
