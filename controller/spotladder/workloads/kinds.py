"""Which workload a job is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spotladder.api.fields import LONGEST_RAYJOB_NAME
from spotladder.api.tieredjob import TieredJob
from spotladder.workloads.jobset import JOBSET, longest_name
from spotladder.workloads.rayjob import RAYJOB
from spotladder.workloads.workload import Workload

WORKLOADS: tuple[Workload, ...] = (RAYJOB, JOBSET)


def workload_of(job: TieredJob) -> Workload:
    """How this job's attempts are made and read."""
    return RAYJOB if job.spec.workload.ray is not None else JOBSET


def longest_attempt_name(workload: Mapping[str, Any]) -> int:
    """Characters that an attempt's name may have, from `spec.workload` as the API server has it."""
    if "jobSet" not in workload:
        return LONGEST_RAYJOB_NAME
    return longest_name(workload["jobSet"]["template"]["spec"])
