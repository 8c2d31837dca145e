"""Enforces `limits.nodes`: the number of nodes of a CapacityTier that all jobs together may hold.

A worker counts as a node, as for the cost, from the moment at which its attempt is persisted. The check uses only
persisted state and existing objects, so a restarted controller gets the same result. Of two jobs with a persisted
attempt that is not launched, the older job has precedence. A standby attempt holds nodes too, and every planned attempt
has precedence over it: it is launched only if there is room beside all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spotladder.clusters.cache import Scoped
from spotladder.core.model import Instant
from spotladder.custom_resources import CapacityRecord, JobRecord
from spotladder.operator.inventory.inventory import JobKey


class Limits:
    """`size` is the number of nodes that a job needs on a CapacityTier, and `standby_size` the number that its standby
    attempt needs. `launched` is whether any of its objects exists, `standby_launched` whether any of its standby
    attempt does."""

    def __init__(
        self,
        jobs: Scoped[JobRecord],
        *,
        size: Callable[[JobRecord, CapacityRecord], int],
        standby_size: Callable[[JobRecord, CapacityRecord], int],
        launched: Callable[[JobKey], bool],
        standby_launched: Callable[[JobRecord], bool],
    ) -> None:
        self._jobs = jobs
        self._size = size
        self._standby_size = standby_size
        self._launched = launched
        self._standby_launched = standby_launched
        self._launching: set[JobKey] = set()

    def full(self, capacity: CapacityRecord, job: JobRecord) -> str:
        """Why this job may not start on this tier now; "" if it may."""
        most = capacity.model.spec.limits.nodes if capacity.model else None
        if most is None:
            return ""
        needed, tier = self._size(job, capacity), f'CapacityTier "{capacity.name}" has limits.nodes {most}'
        if needed > most:
            return f"{tier}: the job needs {needed}, so it never fits: set limits.nodes to {needed} or more"
        held = sum(self._size(other, capacity) for other in self._jobs.all() if self._counts(other, capacity, job))
        held += self._standby_nodes(capacity, job, planned=lambda _other: False)
        if held + needed <= most:
            return ""
        return f"{tier}: {held} are in use, {needed} are needed"

    def room(self, capacity: CapacityRecord, job: JobRecord, *, held: int) -> int | None:
        """How many nodes a job may hold on this tier beyond the number `held`; None: any number."""
        most = capacity.model.spec.limits.nodes if capacity.model else None
        if most is None:
            return None
        others = self._held_by_others(capacity, job) + self._standby_nodes(capacity, job, planned=lambda _other: True)
        return max(0, most - held - others)

    def admits_standby(self, capacity: CapacityRecord, job: JobRecord, *, held: int) -> bool:
        """Whether this job, which holds `held` nodes of the tier, may have a standby attempt there now."""
        most = capacity.model.spec.limits.nodes if capacity.model else None
        if most is None:
            return True
        others = self._held_by_others(capacity, job)
        others += self._standby_nodes(capacity, job, planned=lambda other: _age(other) < _age(job))
        return held + others + self._standby_size(job, capacity) <= most

    @contextmanager
    def launching(self, job: JobRecord) -> Iterator[None]:
        """Count the job as launched inside the block, before its objects are observed."""
        self._launching.add(job.key)
        try:
            yield
        finally:
            self._launching.discard(job.key)

    def _held_by_others(self, capacity: CapacityRecord, job: JobRecord) -> int:
        others = (other for other in self._jobs.all() if other.uid != job.uid and other.capacity == capacity.name)
        return sum(self._size(other, capacity) for other in others)

    def _standby_nodes(self, capacity: CapacityRecord, job: JobRecord, *, planned: Callable[[JobRecord], bool]) -> int:
        """The nodes of the standby attempts of other jobs. `planned`: whether one counts that is not launched yet."""
        standing_by = (
            other for other in self._jobs.all() if other.uid != job.uid and other.standby_capacity == capacity.name
        )
        return sum(
            self._standby_size(other, capacity)
            for other in standing_by
            if self._standby_launched(other) or other.key in self._launching or planned(other)
        )

    def _counts(self, other: JobRecord, capacity: CapacityRecord, job: JobRecord) -> bool:
        if other.uid == job.uid or other.capacity != capacity.name:
            return False
        if job.capacity != capacity.name or _age(other) < _age(job):
            return True
        return other.key in self._launching or self._launched(other.key)


def _age(job: JobRecord) -> tuple[Instant, str]:
    """The older of two jobs has the lower value."""
    return job.created_at, job.uid
