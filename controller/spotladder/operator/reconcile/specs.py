"""The parsed specs of TieredJobs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

from spotladder.api.stored import JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec
from spotladder.workloads.core_spec import core_spec
from spotladder.workloads.template import digests_of

PARSED_SPECS_LIMIT = 128
"""Number of parsed specs that are cached, the most recently used; the others are kept as text."""


@dataclass(frozen=True, slots=True)
class ParsedSpec:
    """A TieredJob and its spec for the core. The spec has the digests of the pod templates, but tiers of unknown
    capacity."""

    job: TieredJob
    spec: JobSpec


class Specs:
    """Parses specs, once for each generation of those in use."""

    def __init__(self) -> None:
        self._parsed: OrderedDict[tuple[str, int], ParsedSpec] = OrderedDict()

    def of(self, record: JobRecord) -> ParsedSpec:
        """The parsed spec. Raises InvalidSpec with every problem."""
        key = record.uid, record.generation
        if key not in self._parsed:
            job = record.parsed()
            spec, templates = core_spec(record, job, {}), digests_of(job)
            tiers = tuple(replace(tier, template=templates[tier.name]) for tier in spec.tiers)
            self._parsed[key] = ParsedSpec(job, replace(spec, tiers=tiers))
            if len(self._parsed) > PARSED_SPECS_LIMIT:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]
