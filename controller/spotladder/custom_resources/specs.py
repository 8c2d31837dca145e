"""The spec of a TieredJob: parsed, and as the core's JobSpec."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace

from spotladder.api.check import checked
from spotladder.api.document import Document
from spotladder.api.resolve import job_spec, sizes, tier_of
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec
from spotladder.custom_resources.records import JobRecord
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.template import digests_of
from spotladder.workloads.tiers import PlacedTier

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
            job = parsed(record)
            self._parsed[key] = job, digests_of(job)
            if len(self._parsed) > PARSED_SPECS_LIMIT:
                self._parsed.popitem(last=False)
        self._parsed.move_to_end(key)
        return self._parsed[key]


def parsed(record: JobRecord) -> TieredJob:
    """The TieredJob. Raises InvalidSpec with every problem."""
    return checked(Document("", record.document(), {}, {}), TieredJob)


def core_spec(record: JobRecord, job: TieredJob, tiers: Mapping[str, PlacedTier]) -> JobSpec:
    """The job as the core's JobSpec. The capacity of a tier that is not in `tiers` is unknown.

    A job that is being deleted is suspended: it commits and releases its nodes.
    """
    spec = job_spec(
        job,
        (tiers[entry.name].core if entry.name in tiers else tier_of(entry) for entry in job.spec.tiers),
        submitted_at=record.created_at,
        workers=workload_of(job).workers(job),
    )
    return replace(spec, suspend=spec.suspend or record.deleting, min_workers=min(sizes(job), default=None))
