"""Whether JobSet's controller acts on an attempt."""

from __future__ import annotations

from spotladder.core.model import Instant
from spotladder.workloads.jobset.records import jobset_of
from spotladder.workloads.operators import silence
from spotladder.workloads.workload import AttemptObjects


def silent_jobset(objects: AttemptObjects, now: Instant) -> str:
    """Why JobSet's controller does not act on the attempt; "" if it does, or still has time."""
    jobset = jobset_of(objects)
    if jobset is None or jobset.deleting or jobset.suspended or objects.pods or jobset.acted_on:
        return ""
    return silence(jobset.created_at, now, "JobSet's controller", f"JobSet {jobset.name} has no status")
