"""The entries of the commit log and their format: one immutable JSON object each.

`start`     a new writer; fences every older writer. Names the job, so that a log has one owner.
`commit`    a checkpoint whose files are all in the store, with size and checksum.
`end`       the job's outcome. Only a `start` may follow it.
`drop`      checkpoints that are no longer valid: their files are being deleted.
`snapshot`  replaces all entries before it, which may then be deleted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal

from spotladder.errors import LogCorrupt, TooLarge

VERSION = 1
"""Version of the log's format. A log with a higher version is rejected. Unknown fields are kept: `more` has them."""


class NewerLog(LogCorrupt):
    """A newer spotladder has written to the log, in a format unknown to this version. The log must not be changed."""


Metric = float | int | str | bool | None

LONGEST_TEXT = 1000
"""Maximum number of characters of a metric that is text."""

LARGEST_ENTRY = 16 << 20
"""Maximum bytes of an entry. A commit of 100,000 files has less."""

MAX_VALUES = 1_000_000
"""Maximum number of values in an entry, which bounds the memory that its parsed form takes."""

LONGEST_FIELD = 4_096
"""Maximum number of characters of a name or a path. A message is cut to this length."""

LONGEST_SHOWN = 100
"""Maximum number of characters of a damaged value that a message shows."""

LARGEST_INTEGER = 2**63
"""An integer metric is less than this; a larger one is stored as a float."""

MAX_SECONDS = 60_000_000_000
"""A time, in seconds since the epoch, and a duration are less than this: 1,900 years, which every calendar has."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a checkpoint: its path in the checkpoint's folder, its size in bytes, its CRC-32 as eight hex
    digits."""

    name: str
    size: int
    crc: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The job that owns a log. An empty field is unknown and matches any value."""

    job: str = ""
    namespace: str = ""
    uid: str = ""

    def is_same(self, other: Owner) -> bool:
        """Whether both can be the same job."""
        mine, theirs = (self.job, self.namespace, self.uid), (other.job, other.namespace, other.uid)
        return all(a == b or not a or not b for a, b in zip(mine, theirs, strict=True))

    def __str__(self) -> str:
        name = "/".join(part for part in (self.namespace, self.job) if part) or "a job without name"
        return f"{name} (uid {self.uid})" if self.uid else name


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a writer. `restart` counts the starts of the attempt from 0, so that each start has its own
    folders. `hands_over`: the program can continue inside the attempt without workers that leave. `stands_by`: its
    library can hold the program of a standby attempt. `workers`: the number of ranks of an elastic job, 0 of another
    job."""

    seq: int
    nonce: str
    at: float
    owner: Owner
    attempt: int
    tier: str = ""
    restart: int = 0
    hands_over: bool = False
    stands_by: bool = False
    workers: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A commit that an attempt could not resume from, because its files did not verify."""

    step: int
    why: str

    def __str__(self) -> str:
        return f"step {self.step} was not resumed from: {self.why}"


@dataclass(frozen=True, slots=True)
class Commit:
    """A checkpoint. `writer` is the nonce of the writer's start; `path` the folder of its files; `at` the time of the
    writer's clock. `skipped`, in the first commit of a start, are the newer commits that this start could not resume
    from. `seconds` is how long the commit took: to write the files, to upload them and to check them in the store; 0 if
    that was not measured, as during an outage of the store. `more` are the fields that a newer version has added."""

    seq: int
    nonce: str
    at: float
    writer: str
    attempt: int
    tier: str
    step: int
    total: int
    path: str
    files: tuple[FileEntry, ...]
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    seconds: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["commit"] = "commit"

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class End:
    """The outcome of the job, which the controller records: `writer` is empty."""

    seq: int
    nonce: str
    at: float
    writer: str
    attempt: int
    outcome: str
    message: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["end"] = "end"


@dataclass(frozen=True, slots=True)
class Drop:
    """Checkpoints whose files are being deleted: `paths` are their folders."""

    seq: int
    nonce: str
    at: float
    paths: tuple[str, ...]
    kind: Literal["drop"] = "drop"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`start` and `end` are the newest; `commits` those not dropped; `dropped` those whose files may still exist."""

    seq: int
    nonce: str
    at: float
    owner: Owner
    start: Start | None
    commits: tuple[Commit, ...]
    dropped: tuple[str, ...]
    end: End | None
    kind: Literal["snapshot"] = "snapshot"


Entry = Start | Commit | End | Drop | Snapshot


def encode(entry: Entry) -> bytes:
    """The entry as one JSON object with a final newline. Raises TooLarge: no reader would accept it."""
    raw = {"v": VERSION, **_as_json(entry)}
    data = (json.dumps(raw, separators=(",", ":"), default=_as_json) + "\n").encode()
    for unit, found, most in (("bytes", len(data), LARGEST_ENTRY), ("values", _values(data), MAX_VALUES)):
        if found > most:
            raise TooLarge(f"log entry {entry.seq}", unit, found, most, "commit fewer, larger files")
    return data


def decode(data: bytes, name: str, seq: int) -> Entry:
    """Parse the entry in `data`. `name` is the object's address, for the message of LogCorrupt.

    Rejects torn, foreign and newer entries, an entry whose number differs from its object's name, and file names
    outside of the folder to which they are downloaded.
    """
    values = _values(data)
    if values > MAX_VALUES:
        raise LogCorrupt(
            f"{name}: has {values:,} values, and at most {MAX_VALUES:,} are read (no setting raises this limit): "
            "continue in a new checkpoint folder; nothing was changed"
        )
    try:
        raw = json.loads(data)
    except RecursionError:
        raise LogCorrupt(
            f"{name}: not an entry of a commit log, its values are nested too deeply: move this object away, or use "
            "another checkpoint folder; nothing was changed"
        ) from None
    except ValueError:
        raise LogCorrupt(
            f"{name}: torn log entry ({len(data)} bytes, not JSON): restore this object from the bucket's versions or "
            "a backup, or continue in a new checkpoint folder; nothing was changed"
        ) from None
    if not isinstance(raw, dict) or not isinstance(raw.get("v"), int) or "kind" not in raw:
        raise LogCorrupt(
            f"{name}: not an entry of a commit log: move this object away, or use another checkpoint folder; "
            "nothing was changed"
        )
    if raw["v"] > VERSION:
        raise NewerLog(
            f"{name}: written by a newer spotladder (log format {raw['v']}, this one reads up to {VERSION}): "
            "upgrade spotladder; nothing was changed"
        )
    try:
        entry: Entry = _entry(raw)
    except (KeyError, TypeError, ValueError) as error:
        raise LogCorrupt(
            f"{name}: damaged log entry ({_why(error)}): restore this object from the bucket's versions or a backup, "
            "or continue in a new checkpoint folder; nothing was changed"
        ) from None
    if entry.seq != seq:
        raise LogCorrupt(
            f"{name}: contains entry {entry.seq}: objects of a log must not be copied or renamed; restore this object; "
            "nothing was changed"
        )
    return entry


def _values(data: bytes) -> int:
    """At least the number of values in the entry."""
    return sum(map(data.count, (b",", b"[", b"{")))


def _as_json(record: Any) -> dict[str, Any]:
    """The fields of an entry or of a nested record, without the copies that `asdict` makes."""
    raw = {one.name: getattr(record, one.name) for one in fields(record)}
    return {**raw.pop("more", {}), **raw}


def _entry(raw: Mapping[str, Any]) -> Any:
    kind = _KINDS.get(_text(raw["kind"]))
    if kind is None:
        raise ValueError(f"unknown kind {raw['kind']!r}")
    return _record(kind, raw)


def _record(kind: type, raw: Mapping[str, Any]) -> Any:
    """The record of this kind with these fields. A compaction by this version writes those of a newer version again."""
    names = _FIELDS[kind]
    values = {name: _READ[name](raw[name]) for name in names if name not in _OPTIONAL or name in raw}
    if kind in _EXTENSIBLE:
        values["more"] = {name: value for name, value in raw.items() if name not in names and name not in {"v", "kind"}}
    return kind(**values)


def _int(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < LARGEST_INTEGER:
        raise ValueError(f"expected a non-negative integer, got {_shown(value)}")
    return value


def _time(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < MAX_SECONDS:
        raise ValueError(f"expected a time in seconds, got {_shown(value)}")
    return float(value)


def _seconds(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < MAX_SECONDS:
        raise ValueError(f"expected a non-negative number of seconds, got {_shown(value)}")
    return float(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {_shown(value)}")
    if len(value) > LONGEST_FIELD:
        raise ValueError(f"expected at most {LONGEST_FIELD:,} characters, got {_shown(value)}")
    return value


def _cut(value: object) -> str:
    return _text(value[:LONGEST_FIELD] if isinstance(value, str) else value)


def _safe(value: object) -> str:
    name = _text(value)
    if not name or name.startswith("/") or ".." in PurePosixPath(name).parts or "\0" in name:
        raise ValueError(f"expected a relative path inside the checkpoint folder, got {_shown(name)}")
    return name


def _each(read: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda values: tuple(map(read, values))


def _shown(value: object) -> str:
    if isinstance(value, list | dict):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, str) and len(value) > LONGEST_SHOWN:
        return f"{value[:LONGEST_SHOWN]!r}…, {len(value):,} characters"
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _why(error: Exception) -> str:
    return f"field {error} is missing" if isinstance(error, KeyError) else str(error)


_KINDS: dict[str, type[Entry]] = {"start": Start, "commit": Commit, "end": End, "drop": Drop, "snapshot": Snapshot}
_EXTENSIBLE = {Start, Commit, End}
_FIELDS: dict[type, tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind) if one.name not in {"kind", "more"})
    for kind in (*_KINDS.values(), Owner, FileEntry, Skipped)
}
_OPTIONAL = {"hands_over", "stands_by", "workers", "metrics", "skipped", "seconds", "message"}
_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("attempt", "restart", "seq", "size", "step", "total", "workers"), _int),
    **dict.fromkeys(("crc", "job", "namespace", "nonce", "outcome", "tier", "uid", "writer"), _text),
    **dict.fromkeys(("name", "path"), _safe),
    **dict.fromkeys(("dropped", "paths"), _each(_safe)),
    **dict.fromkeys(("message", "why"), _cut),
    **dict.fromkeys(("hands_over", "stands_by"), lambda value: value is True),
    "at": _time,
    "seconds": _seconds,
    "metrics": dict,
    "owner": partial(_record, Owner),
    "start": lambda raw: None if raw is None else _record(Start, raw),
    "end": lambda raw: None if raw is None else _record(End, raw),
    "commits": _each(partial(_record, Commit)),
    "files": _each(partial(_record, FileEntry)),
    "skipped": _each(partial(_record, Skipped)),
}
"""How the value of a field is read, in every record that has it."""
