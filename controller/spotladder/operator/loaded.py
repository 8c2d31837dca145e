"""The records of one reconcile: all data about one TieredJob. They are frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec, JobState, Observation, Seconds
from spotladder.operator.condition_types import Diagnosis
from spotladder.operator.inventory.clusters import JobObjects
from spotladder.operator.reading import Reading
from spotladder.workloads.tiers import PlacedTier
from spotladder.workloads.workload import WorkloadKind


@dataclass(frozen=True, slots=True)
class Tiers:
    """A job's tiers, resolved, with the reason for each unresolved tier."""

    resolved: Mapping[str, PlacedTier]
    missing: Mapping[str, Diagnosis]

    def cluster_of(self, tier: str) -> str | None:
        """The cluster of the tier, if known."""
        return self.resolved[tier].cluster if tier in self.resolved else None


@dataclass(frozen=True, slots=True)
class Loaded:
    """The input of one reconcile.

    `before` is the state in `status`; `state` may differ from it only in fields that change with time. `capacity` are
    the job's last observed CapacityTiers by name. `reading` is the last reading of the commit log.
    """

    record: JobRecord
    job: TieredJob
    workload: WorkloadKind
    tiers: Tiers
    capacity: Mapping[str, CapacityRecord]
    reading: Reading
    spec: JobSpec
    status: TieredJobStatus
    before: JobState
    state: JobState
    seen: Observation
    found: JobObjects

    @property
    def clusters(self) -> dict[str, str]:
        """The cluster of each tier, if known."""
        return {name: tier.cluster for name, tier in self.tiers.resolved.items()}


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """No decision is possible now: `problem` is why the job is held, and `valid` whether the cause is not its spec. If
    it is None, the job is requeued after this number of seconds; None: an event requeues it."""

    record: JobRecord
    problem: Diagnosis | None = None
    valid: bool = False
    requeue: Seconds | None = None
