"""The parsed specs of TieredJobs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from spotladder.api.stored import JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.workloads.template import digests_of

PARSED_SPECS_LIMIT = 128
"""Number of parsed specs that are cached, the most recently used; the others are kept as text."""


class Specs:
    """Parses specs, once for each generation of those in use."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[str, int], tuple[TieredJob, Mapping[str, str]]] = OrderedDict()

    def of(self, record: JobRecord) -> TieredJob:
        """The TieredJob. Raises InvalidSpec with every problem."""
        return self._of(record)[0]

    def templates(self, record: JobRecord) -> Mapping[str, str]:
        """For each tier a digest of what its pods are made from. Raises InvalidSpec as `of`."""
        return self._of(record)[1]

    def _of(self, record: JobRecord) -> tuple[TieredJob, Mapping[str, str]]:
        key = record.uid, record.generation
        if key not in self._parsed:
            job = record.parsed()
            self._parsed[key] = job, digests_of(job)
            if len(self._parsed) > PARSED_SPECS_LIMIT:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]
