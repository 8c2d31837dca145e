"""Which workload a job is."""

from __future__ import annotations

from spotladder.api.tieredjob import TieredJob
from spotladder.workloads.jobset import JOBSET
from spotladder.workloads.rayjob import RAYJOB
from spotladder.workloads.workload import Workload

WORKLOADS: tuple[Workload, ...] = (RAYJOB, JOBSET)


def workload_of(job: TieredJob) -> Workload:
    """How this job's attempts are made and read."""
    return RAYJOB if job.spec.workload.ray is not None else JOBSET
