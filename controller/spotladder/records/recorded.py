"""The records of a job as they are read back: `Recorded`, and a line of JSON as a record."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast, get_args

from spotladder.core.model import Instant, JobState
from spotladder.core.plain import from_plain
from spotladder.records.model import Decided, Record

KINDS: Mapping[str, type[Record]] = {kind.__name__: kind for kind in get_args(Record)}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A stream that was read. `damaged` is the number of complete lines that could not be parsed; `gaps` are sentences
    about other missing data. `printed` are the last lines of programs: attempt, source, lines."""

    records: tuple[Record, ...] = ()
    damaged: int = 0
    gaps: tuple[str, ...] = ()
    printed: tuple[tuple[int, str, tuple[str, ...]], ...] = ()

    @property
    def state(self) -> JobState:
        """The newest recorded state; that of a new job without one."""
        newest = next((record for record in reversed(self.records) if isinstance(record, Decided)), None)
        return JobState() if newest is None else newest.after or newest.state


_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)
"""The errors of `decode` for a damaged line."""


NEVER: Instant = 253_402_300_800.0
"""The year 10000: the line of a record with a time from then on, or from before 1970, is damaged."""


def decoded(lines: Iterable[str | bytes]) -> Iterator[Record | None]:
    """The records of the lines; None for each damaged line. Lines of the kinds of a newer version are left out."""
    for line in lines:
        try:
            record = decode(line)
        except _DAMAGE:
            yield None
            continue
        if record is not None:
            yield record if 0.0 <= record.at < NEVER else None


def decode(line: str | bytes) -> Record | None:
    """The record of a line; None for a kind of a newer version. Raises one of `_DAMAGE` for a damaged line."""
    value = json.loads(line)
    kind = KINDS.get(value["kind"])
    return None if kind is None else cast("Record", from_plain(kind, value))
