"""The input of one reconcile: everything that is known of one TieredJob, frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from spotladder.api.status import TieredJobStatus
from spotladder.api.tieredjob import TieredJob
from spotladder.core.model import JobSpec, JobState, Observation
from spotladder.custom_resources import JobRecord
from spotladder.operator.inventory.clusters import Found
from spotladder.workloads.tiers import ResolvedTier
from spotladder.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class Loaded:
    """Everything that one pass knows. `before` is the state that `status` has, `state` may be newer by time."""

    record: JobRecord
    job: TieredJob
    workload: Workload
    tiers: Mapping[str, ResolvedTier]
    clusters: Mapping[str, str]
    spec: JobSpec
    status: TieredJobStatus
    before: JobState
    state: JobState
    seen: Observation
    found: Found
