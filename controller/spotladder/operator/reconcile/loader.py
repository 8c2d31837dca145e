"""Loads the input of one reconcile: the job's spec and state, its tiers, its commit log, and its objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import MappingProxyType

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import CapacityRecord, JobRecord, status_of
from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.cache import Cache
from spotladder.clusters.clock import Clock
from spotladder.core.model import JobState, Seconds, Stage
from spotladder.errors import InvalidSpec
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.clusters import Clusters
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded, NotLoaded, Tiers
from spotladder.operator.prices import Prices
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import load
from spotladder.operator.reconcile.known_job import KnownJob
from spotladder.operator.reconcile.log_reads import time_until_log_read
from spotladder.operator.reconcile.persist import Persistence
from spotladder.operator.reconcile.preconditions import UNBLAMED, Preconditions
from spotladder.operator.reconcile.specs import ParsedSpec, parsed_spec
from spotladder.operator.storage.commit_logs import Logs
from spotladder.operator.storage.outages import Outages
from spotladder.operator.storage.readings import Readings
from spotladder.policies.registry import by_name
from spotladder.workloads.kinds import workload_of

SYNC_RETRY_INTERVAL: Seconds = 10.0
"""Requeue delay for a job whose clusters have not synced yet; a finished sync requeues it sooner."""

PARSED_SPECS_LIMIT = 128
"""Number of parsed specs that are cached, the most recently used; the others are kept as text."""


policy_named = cache(by_name)
"""Returns the policy with a name, or raises InvalidSpec. The search reads the metadata of all installed packages."""


@dataclass(slots=True)
class Loader:
    """`known_jobs` has the data of each job that is kept between two reconciles."""

    capacity: Cache[CapacityRecord]
    clusters: Clusters
    preconditions: Preconditions
    persistence: Persistence
    logs: Logs
    outages: Outages
    readings: Readings
    prices: Prices
    clock: Clock
    attribution_window: Seconds
    known_jobs: dict[JobKey, KnownJob] = field(default_factory=dict)
    _parsed: Callable[[JobRecord], ParsedSpec] = field(
        default_factory=lambda: lru_cache(PARSED_SPECS_LIMIT)(parsed_spec)
    )

    async def load(self, record: JobRecord) -> Loaded | NotLoaded:
        """All data about the job, if a decision is possible now."""
        known = self.known_jobs.setdefault(record.key, KnownJob(record.uid))
        held = status_of(record)
        try:
            before, state = known.states(held)
        except InvalidSpec as error:
            return NotLoaded(record, Diagnosis(ConditionReason.STATE_UNREADABLE, str(error)))
        if not record.finalized:
            record = await self.persistence.finalize(record)
        try:
            parsed = self._parsed(record)
            job = parsed.job
            policy_named(job.spec.policy)
        except InvalidSpec as error:
            return NotLoaded(record, Diagnosis(ConditionReason.INVALID_SPEC, "; ".join(str(error).splitlines())))
        tiers = self._tiers(job, known)
        if load.awaits_sync(self.clusters, tiers, state):
            # Objects that are being listed there must not count as lost.
            return NotLoaded(record, requeue=SYNC_RETRY_INTERVAL)
        reading = (await self.readings.of(record, job, state)).after(state.progress)
        if problem := self.preconditions.to_begin(
            record, job, state, tiers=tiers, reading=reading, known=known.capacity
        ):
            return NotLoaded(record, problem, valid=problem.reason in UNBLAMED)
        if problem := self.preconditions.to_see(record, job):
            return NotLoaded(record, problem, valid=True)
        if state.stage is Stage.IDLE and not reading.known and not record.deleting:
            return NotLoaded(record)  # The first read of the log is in progress and requeues this job.
        loaded = self._observe(
            record, parsed, held=held, before=before, state=state, tiers=tiers, reading=reading, known=known
        )
        waits = time_until_log_read(loaded, self.logs, self.clock.now())
        return NotLoaded(record, requeue=waits) if waits else loaded

    def _tiers(self, job: TieredJob, known: KnownJob) -> Tiers:
        for name in job.spec.capacity_names:
            if named := self.capacity.get(name):
                known.capacity[name] = named
        return load.resolve(job, self.capacity.get, known.capacity.get, self.clusters.names, self.prices.of)

    def _observe(
        self,
        record: JobRecord,
        parsed: ParsedSpec,
        *,
        held: TieredJobStatus,
        before: JobState,
        state: JobState,
        tiers: Tiers,
        reading: Reading,
        known: KnownJob,
    ) -> Loaded:
        workload = workload_of(parsed.job)
        seen, found = load.observe(
            record,
            state,
            workload=workload,
            clusters=self.clusters,
            tiers=tiers,
            reading=reading,
            blocked=known.blocked,
            outage=lambda number: self.outages.of(record.key, number, reading.progress),
            quiet_for=lambda number: self.outages.quiet_for(record.key, number),
            now=self.clock.now(),
            ticks=self.clock.ticks(),
        )
        return Loaded(
            record=record,
            job=parsed.job,
            workload=workload,
            tiers=tiers,
            capacity=MappingProxyType(dict(known.capacity)),
            reading=reading,
            spec=load.spec_of(parsed.spec, tiers, reading=reading, attribution_window=self.attribution_window),
            status=held,
            before=before,
            state=state,
            seen=seen,
            found=found,
        )
