"""Prints the output of a run's programs line by line as it is written."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from spotladder.display.view import View
from spotladder.display.view_state import ViewSnapshot
from spotladder.output.lines import Lines
from spotladder.records.model import Record

if TYPE_CHECKING:
    from rich.console import Console

CHUNK = 1 << 20
"""Maximum number of bytes of a log that one read returns."""


def end_of(log: Path, longest: int) -> str:
    """The last bytes of a log; "" if it does not exist."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - longest))
            return stream.read().decode(errors="replace")
    except OSError:
        return ""


class LogReader:
    """Reads one log, from the end of the last read. Returns complete lines; `rest` returns an incomplete last line."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path, self._offset, self._split = path, offset, Lines()

    def lines(self) -> list[str]:
        """The next lines since the last call; none at the end of the log, or while it does not exist."""
        lines: list[str] = []
        while not lines and (more := self._read()):
            lines = self._split.add(more)
        return lines

    def rest(self) -> list[str]:
        """The last line if it is incomplete."""
        return self._split.rest()

    def _read(self) -> bytes:
        try:
            with self._path.open("rb") as log:
                log.seek(self._offset)
                more = log.read(CHUNK)
        except OSError:
            return b""
        self._offset += len(more)
        return more


class WithOutput:
    """A view that also prints the programs' output, each line with the attempt's number.

    `folder` is the run's folder of attempts. Existing content of the logs belongs to an earlier run and is not
    printed.
    """

    def __init__(self, view: View, console: Console, folder: Path) -> None:
        self._view, self._console, self._folder = view, console, folder
        self._readers = {log: LogReader(log, log.stat().st_size) for log in self._logs()}

    def add(self, record: Record) -> None:
        """Print new output of the programs, then call the view."""
        self._print_new()
        self._view.add(record)

    def update(self, snapshot: ViewSnapshot) -> None:
        """Print new output of the programs, then call the view."""
        self._print_new()
        self._view.update(snapshot)

    def __enter__(self) -> Self:
        self._view.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._print_new()
        for log, reader in self._readers.items():
            self._print(log, reader.rest())
        self._view.__exit__(kind, error, at)

    def _print_new(self) -> None:
        for log in self._logs():
            reader = self._readers.setdefault(log, LogReader(log))
            while lines := reader.lines():
                self._print(log, lines)

    def _print(self, log: Path, lines: Iterable[str]) -> None:
        for line in lines:
            prefix = f"[attempt {int(log.parent.name)}] "
            self._console.print(prefix + line, markup=False, highlight=False, soft_wrap=True)

    def _logs(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*/driver.log"))
