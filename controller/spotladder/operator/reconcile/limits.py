"""Enforces `limits.nodes`: the number of nodes of a CapacityTier that all jobs together may hold.

A worker counts as a node, as for the cost, from the moment at which its attempt is persisted. The check uses only
persisted state and existing objects, so a restarted controller gets the same result. Of two jobs with a persisted
attempt that is not launched, the older job goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spotladder.clusters.cache import Scoped
from spotladder.custom_resources import CapacityRecord, JobRecord
from spotladder.operator.inventory.inventory import JobKey


class Limits:
    """`size` is the number of nodes that a job needs on a CapacityTier, `launched` whether any of its
    objects exists."""

    def __init__(
        self,
        jobs: Scoped[JobRecord],
        *,
        size: Callable[[JobRecord, CapacityRecord], int],
        launched: Callable[[JobKey], bool],
    ) -> None:
        self._jobs = jobs
        self._size = size
        self._launched = launched
        self._launching: set[JobKey] = set()

    def full(self, capacity: CapacityRecord, job: JobRecord) -> str:
        """Why this job may not start on this tier now; "" if it may."""
        most = capacity.model.spec.limits.nodes if capacity.model else None
        if most is None:
            return ""
        needed = self._size(job, capacity)
        held = sum(self._size(other, capacity) for other in self._jobs.all() if self._counts(other, capacity, job))
        if held + needed <= most:
            return ""
        return f'CapacityTier "{capacity.name}" has limits.nodes {most}: {held} are in use, {needed} are needed'

    def room(self, capacity: CapacityRecord, job: JobRecord, *, held: int) -> int | None:
        """How many nodes a job may hold on this tier beyond the number `held`; None: any number."""
        most = capacity.model.spec.limits.nodes if capacity.model else None
        if most is None:
            return None
        others = (other for other in self._jobs.all() if other.uid != job.uid and other.capacity == capacity.name)
        return max(0, most - held - sum(self._size(other, capacity) for other in others))

    @contextmanager
    def launching(self, job: JobRecord) -> Iterator[None]:
        """Count the job as launched inside the block, before its objects are observed."""
        self._launching.add(job.key)
        try:
            yield
        finally:
            self._launching.discard(job.key)

    def _counts(self, other: JobRecord, capacity: CapacityRecord, job: JobRecord) -> bool:
        if other.uid == job.uid or other.capacity != capacity.name:
            return False
        if job.capacity != capacity.name or (other.created_at, other.uid) < (job.created_at, job.uid):
            return True
        return other.key in self._launching or self._launched(other.key)
