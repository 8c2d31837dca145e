"""The timeline of a run: one JSON object per line, append-only.

1. The timeline is for users and for the report. A resumed run decides from the job's state and the commit log, so the
   loss of the last lines of a timeline never changes a decision.
2. A record counts once its line ends. Readers ignore an incomplete last line of a killed writer, and the next writer
   removes it.
3. An append is one write to an open file, whatever the length of the file. Samples (heartbeats, bills) at intervals
   shorter than a thousandth of the run so far are thinned out, so that the file of a month's run has about a megabyte.
   The last sample before any other record is always kept: it has the progress at the time of that record.
4. Readers ignore unknown kinds and fields, and ignore and count damaged lines.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, cast, get_args

from spotladder.core.model import Instant, JobSpec, Loss, Move
from spotladder.core.plain import from_plain, to_plain
from spotladder.core.reasons import Cause, Reason
from spotladder.errors import EnvironmentFailure

if TYPE_CHECKING:
    from spotladder.checkpoints.entries import Commit

SAMPLES = 1000
"""A sample is written only after `1/SAMPLES` of the run's length since the last sample of its kind and"""

SPACING = 0.5
"""this many seconds."""


class NodeChange(StrEnum):
    """A change in the life of a node."""

    ASKED = "Asked"  # requested from its pool, provisioning
    UP = "Up"  # its process runs and has joined the cluster
    NOTICED = "Noticed"  # will be reclaimed at `until`
    GONE = "Gone"


@dataclass(frozen=True, slots=True)
class Began:
    """A runner started or resumed (`resumed`) the job. `spec` applies from here on, and so do the names of the policy
    and of the shadow policy, "" without one."""

    at: Instant
    job: str
    namespace: str
    spec: JobSpec
    resumed: bool = False
    policy: str = "ordered"
    shadow: str = ""


@dataclass(frozen=True, slots=True)
class Moved:
    """A decided transition of the job's stage."""

    at: Instant
    move: Move


@dataclass(frozen=True, slots=True)
class Lost:
    """A lost pod was counted. `failures` is the tier's count after this loss or, for pods lost together, after all of
    them; 0 if unknown."""

    at: Instant
    loss: Loss
    failures: int


@dataclass(frozen=True, slots=True)
class Launched:
    """The attempt was launched for the first time."""

    at: Instant
    attempt: int
    tier: str


@dataclass(frozen=True, slots=True)
class DriverStarted:
    """The process of the attempt's program has started. The time since the preceding loss is the reaction time."""

    at: Instant
    attempt: int


@dataclass(frozen=True, slots=True)
class DriverExited:
    """The attempt's program ended. `code` is None if it was killed or its exit code is unknown."""

    at: Instant
    attempt: int
    code: int | None = None


@dataclass(frozen=True, slots=True)
class NodeChanged:
    """A node of the attempt was requested, became ready, got a notice or is gone. `cause` is the reason of a notice or
    loss."""

    at: Instant
    node: str
    attempt: int
    tier: str
    change: NodeChange
    cause: Cause | None = None
    until: Instant | None = None


@dataclass(frozen=True, slots=True)
class Resized:
    """An elastic attempt trains with this number of workers now, out of `wanted`."""

    at: Instant
    attempt: int
    workers: int
    wanted: int


@dataclass(frozen=True, slots=True)
class PoolChanged:
    """The pool of a tier started or stopped providing nodes."""

    at: Instant
    tier: str
    available: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit in the commit log. `metrics` are the program's own, among them `loss` if it reports one."""

    at: Instant
    attempt: int
    tier: str
    step: int
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, commit: "Commit") -> Self:
        """The entry of the commit log as a record."""
        numbers = {key: float(value) for key, value in commit.metrics.items() if isinstance(value, (int, float))}
        return cls(commit.at, commit.attempt, commit.tier, commit.step, commit.total, numbers)


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat of the program with its progress. A sample."""

    at: Instant
    attempt: int
    step: int
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LeftBill:
    """The cost in USD of an earlier attempt, while it was being removed, since the last sample."""

    attempt: int
    tier: str
    spent: float
    on_demand: float


@dataclass(frozen=True, slots=True)
class Billed:
    """The cost of the job so far, in USD, over all tiers, as `JobState` counts it. A sample.

    `nodes` are paid for now; `on_demand` is what the same node-seconds would have cost on demand. `left` are the parts
    that belong to earlier attempts; the rest since the last sample is that of the attempt that was live then.
    """

    at: Instant
    spent: float
    on_demand: float
    nodes: int = 0
    left: tuple[LeftBill, ...] = ()


@dataclass(frozen=True, slots=True)
class Noted:
    """Any other message of one line, for example that a resume skipped a corrupt commit. `warning`: the message
    reports a problem."""

    at: Instant
    text: str
    attempt: int = 0
    warning: bool = True


@dataclass(frozen=True, slots=True)
class Waited:
    """What the job waits for, as `core.explanation` explains it, each time that this changes; `message` "" once it
    waits for nothing. `since` is when the wait began and `until` when `timer` expires, with the effect `then`."""

    at: Instant
    message: str = ""
    since: Instant = 0.0
    timer: str = ""
    until: Instant | None = None
    then: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """The job was still running when its timeline was read."""

    at: Instant


@dataclass(frozen=True, slots=True)
class Ended:
    """The runner stopped: the job has succeeded (0), failed (1, 3, 4), or can be resumed (75)."""

    at: Instant
    exit_code: int
    reason: Reason
    message: str = ""


Record = (
    Began
    | Moved
    | Lost
    | Launched
    | DriverStarted
    | DriverExited
    | NodeChanged
    | Resized
    | PoolChanged
    | Committed
    | Beat
    | Billed
    | Noted
    | Waited
    | Looked
    | Ended
)

KINDS: Mapping[str, type[Record]] = {kind.__name__: kind for kind in get_args(Record)}
SAMPLED = (Beat, Billed)
DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A timeline that was read. `damaged` is the number of complete lines that could not be parsed; `gaps` are
    sentences about other missing data. `printed` are the last lines of programs: attempt, source, lines."""

    records: tuple[Record, ...] = ()
    damaged: int = 0
    gaps: tuple[str, ...] = ()
    printed: tuple[tuple[int, str, tuple[str, ...]], ...] = ()


class Timeline:
    """The writer of a run's timeline; the runner's lock on the job ensures that it is the only one. Not thread-safe.

    Raises `EnvironmentFailure` if the file cannot be written (disk full, no permission), and then removes the
    incomplete line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._began: Instant | None = None
        self._written: dict[type, Instant] = {}
        self._held: dict[type, Record] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._size = _cut_torn_tail(self._file)
            self._began = _first_instant(path)
        except OSError as error:
            raise self._refused(error) from error

    def append(self, record: Record) -> None:
        """Write the record, or hold back a sample that follows the last one of its kind too soon."""
        kind = type(record)
        if self._began is None:
            self._began = record.at
        if kind in SAMPLED:
            spacing = max(SPACING, (record.at - self._began) / SAMPLES)
            if kind in self._written and 0 <= record.at - self._written[kind] < spacing:
                self._held[kind] = record
                return
            self._held.pop(kind, None)
            self._written[kind] = record.at
            self._write([record])
        else:
            self._write([*self._take_held(), record])

    def close(self) -> None:
        """Write the held samples and close the file. Idempotent."""
        if self._file >= 0:
            try:
                self._write(self._take_held())
            finally:
                os.close(self._file)
                self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _take_held(self) -> list[Record]:
        held = sorted(self._held.values(), key=lambda record: record.at)
        self._held.clear()
        return held

    def _write(self, records: Iterable[Record]) -> None:
        lines = "".join(f"{encode(record)}\n" for record in records).encode("ascii")
        if not lines:
            return
        try:
            rest = memoryview(lines)
            while rest:  # A disk that fills up accepts a part first and reports the error at the next write.
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise self._refused(error) from error
        self._size += len(lines)

    def _refused(self, error: OSError) -> EnvironmentFailure:
        what = error.strerror or str(error)
        return EnvironmentFailure(
            f"{self._path}: cannot write the timeline: {what}; free space, then run with --resume"
        )


def read(path: Path) -> Recorded:
    """All records of a timeline in the order in which they were written; empty if the file does not exist.

    Raises `EnvironmentFailure` if the file exists and cannot be read.
    """
    records: list[Record] = []
    damaged = 0
    try:
        for line in _complete_lines(path):
            try:
                record = decode(line)
            except DAMAGE:
                damaged += 1
                continue
            if record is not None:
                records.append(record)
    except FileNotFoundError:
        return Recorded()
    except OSError as error:
        raise EnvironmentFailure(f"{path}: cannot read the timeline: {error.strerror}") from error
    return Recorded(tuple(records), damaged)


def encode(record: Record) -> str:
    """One line of strict ASCII JSON, without its newline."""
    return json.dumps(
        {"kind": type(record).__name__, **to_plain(record, full=True)}, separators=(",", ":"), allow_nan=False
    )


def decode(line: str | bytes) -> Record | None:
    """The record of a line; None for a kind of a newer version. Raises ValueError, TypeError or KeyError for a damaged
    line."""
    value = json.loads(line)
    kind = KINDS.get(value["kind"])
    return None if kind is None else cast("Record", from_plain(kind, value, lenient=True))


def _complete_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _cut_torn_tail(file: int) -> int:
    """Remove an incomplete last line and return the remaining length. Reads only the end of the file."""
    size = end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(file, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end < size:
        os.ftruncate(file, end)
    return end


def _first_instant(path: Path) -> Instant | None:
    for line in _complete_lines(path):
        try:
            record = decode(line)
        except DAMAGE:
            continue
        if record is not None:
            return record.at
    return None
