"""Which samples of a stream are written, so that the length of the stream grows with the logarithm of the run's.

A sample is written only after a part of the run's length so far since the last sample of its kind. Of heartbeats and
bills, the last one before any other record is always written: it has the progress at the time of that record. Of
decisions, the last one is written when the job has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from spotladder.core.model import Instant, Seconds
from spotladder.records.model import Beat, Billed, Decided, Ended, Record

SPACINGS: Mapping[type, tuple[Seconds, float]] = MappingProxyType(
    {Beat: (0.5, 1000), Billed: (0.5, 1000), Decided: (5.0, 200)}
)
"""For each kind of sample, the shortest time between two of them, and into how many parts the run's length is divided
for a longer one."""

SAMPLED = tuple(SPACINGS)


class Sampler:
    """Samples one stream. `began` is the time of its first record; None: it has none."""

    def __init__(self, began: Instant | None) -> None:
        self._began = began
        self._written: dict[type, Instant] = {}
        self._held: dict[type, Record] = {}

    def due(self, record: Record, *, full: bool = False) -> list[Record]:
        """The records to write now that this one follows; it is held back if it is a sample that comes too soon, or if
        the stream is `full`."""
        kind = type(record)
        if self._began is None:
            self._began = record.at
        if isinstance(record, Decided) and record.after is not None:
            self._held.pop(Decided, None)
            self._written[kind] = record.at
            return [*self.take(Beat, Billed), record]
        if kind not in SPACINGS:
            return [*(self.take() if isinstance(record, Ended) else self.take(Beat, Billed)), record]
        shortest, parts = SPACINGS[kind]
        spacing = max(shortest, (record.at - self._began) / parts)
        if full or (kind in self._written and 0 <= record.at - self._written[kind] < spacing):
            self._held[kind] = record
            return []
        self._held.pop(kind, None)
        self._written[kind] = record.at
        return [record]

    def take(self, *kinds: type) -> list[Record]:
        """The held samples of these kinds, or of all, which are held no longer."""
        taken = [self._held.pop(kind) for kind in kinds or SAMPLED if kind in self._held]
        return sorted(taken, key=lambda record: record.at)
