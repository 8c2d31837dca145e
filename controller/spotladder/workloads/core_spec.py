"""The core's JobSpec of a job in a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from spotladder.api.resolve import job_spec, sizes, tier_of
from spotladder.api.stored import JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec
from spotladder.workloads.kinds import workload_of
from spotladder.workloads.tiers import PlacedTier


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
