"""The records of a run in a file of this machine: one JSON object per line, append-only.

1. A resumed run decides from the job's state and the commit log, so the loss of the last lines never changes a
   decision.
2. A record counts once its line ends. Readers ignore an incomplete last line of a killed writer, and the next writer
   removes it.
3. An append is one write to an open file, whatever the length of the file. `sampling` bounds its length: beyond
   `MAX_SAMPLED` bytes, only the last samples are written. Secrets are removed as from the output of programs.
4. Readers ignore unknown kinds and fields, and ignore and count damaged lines.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from spotladder.core.model import Instant
from spotladder.errors import EnvironmentFailure
from spotladder.output.redact import redacted
from spotladder.records.model import Record, encode
from spotladder.records.recorded import Recorded, decoded
from spotladder.records.sampling import Sampler

MAX_LINE = 16 * 1024 * 1024
"""Maximum bytes of a line; a longer one counts as damaged."""

MAX_SAMPLED = 64 * 1024 * 1024
"""Size of the file in bytes above which only the last samples are written."""


class Timeline:
    """The writer of a run's timeline; the runner's lock on the job ensures that it is the only one. Not thread-safe.

    Raises `EnvironmentFailure` if the file cannot be written (disk full, no permission), and then removes the
    incomplete line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            self._size = _cut_torn_tail(self._file)
            self._sampler = Sampler(_first_instant(path))
        except OSError as error:
            raise self._refused(error) from error

    def append(self, record: Record) -> None:
        """Write the record, or hold back a sample that follows the last one of its kind too soon."""
        self._write(self._sampler.due(record, full=self._size >= MAX_SAMPLED))

    def close(self) -> None:
        """Write the held samples and close the file. Idempotent."""
        if self._file >= 0:
            try:
                self._write(self._sampler.take())
            finally:
                os.close(self._file)
                self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _write(self, records: Iterable[Record]) -> None:
        lines = "".join(f"{encode(record, redacted)}\n" for record in records).encode("ascii")
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
            f"{self._path}: cannot write the timeline: {what}; free space, then run with --continue"
        )


def read(path: Path) -> Recorded:
    """All records of a timeline in the order in which they were written; empty if the file does not exist.

    Raises `EnvironmentFailure` if the file exists and cannot be read.
    """
    try:
        found = list(decoded(_complete_lines(path)))
    except FileNotFoundError:
        return Recorded()
    except OSError as error:
        raise EnvironmentFailure(f"{path}: cannot read the timeline: {error.strerror}") from error
    records = tuple(record for record in found if record is not None)
    return Recorded(records, len(found) - len(records))


def _complete_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE):
            if line.endswith(b"\n") or len(line) == MAX_LINE:
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
    return next((record.at for record in decoded(_complete_lines(path)) if record is not None), None)
