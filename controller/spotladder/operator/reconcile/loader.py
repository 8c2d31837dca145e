"""Loads the input of one reconcile: the job's spec and state, its tiers, its commit log, and its objects."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import CapacityRecord, JobRecord, status_of
from spotladder.api.tieredjob import TieredJob
from spotladder.clusters.cache import Cache
from spotladder.clusters.clock import Clock
from spotladder.core.model import JobState, Seconds, Stage
from spotladder.core.policies import Policy
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
from spotladder.operator.reconcile.resolved_tiers import ResolvedTiers
from spotladder.operator.reconcile.specs import Specs
from spotladder.operator.storage.commit_logs import Logs
from spotladder.operator.storage.outages import Outages
from spotladder.operator.storage.readings import Readings
from spotladder.workloads.kinds import workload_of

SYNC_RETRY_INTERVAL: Seconds = 10.0
"""Requeue delay for a job whose clusters have not synced yet; a finished sync requeues it sooner."""


class Loader:
    """`known_jobs` has the data of each job that is kept between two reconciles; `policy` returns the policy with a
    name, or raises InvalidSpec."""

    def __init__(
        self,
        *,
        capacity: Cache[CapacityRecord],
        clusters: Clusters,
        known_jobs: dict[JobKey, KnownJob],
        policy: Callable[[str], Policy],
        preconditions: Preconditions,
        persistence: Persistence,
        logs: Logs,
        outages: Outages,
        readings: Readings,
        prices: Prices,
        clock: Clock,
        attribution_window: Seconds,
    ) -> None:
        self._capacity = capacity
        self._clusters = clusters
        self._known_jobs = known_jobs
        self._policy = policy
        self._preconditions = preconditions
        self._persistence = persistence
        self._logs = logs
        self._outages = outages
        self._readings = readings
        self._clock = clock
        self._attribution_window = attribution_window
        self._specs = Specs()
        self._resolved = ResolvedTiers(capacity, clusters=clusters.names, price=prices.of)

    def forget(self, key: JobKey) -> None:
        """Drop the data of a job that is gone."""
        self._resolved.forget(key)

    async def load(self, record: JobRecord) -> Loaded | NotLoaded:
        """All data about the job, if a decision is possible now."""
        known = self._known_jobs.setdefault(record.key, KnownJob())
        held = status_of(record)
        try:
            before, state = known.states(held)
        except InvalidSpec as error:
            return NotLoaded(record, Diagnosis(ConditionReason.STATE_UNREADABLE, str(error)))
        if not record.finalized:
            record = await self._persistence.finalize(record)
        try:
            job = self._specs.of(record)
            self._policy(job.spec.policy.name)
        except InvalidSpec as error:
            return NotLoaded(record, Diagnosis(ConditionReason.INVALID_SPEC, "; ".join(str(error).splitlines())))
        tiers = self._tiers(record, job, known)
        if load.awaits_sync(self._clusters, tiers, state):
            # Objects that are being listed there must not count as lost.
            return NotLoaded(record, requeue=SYNC_RETRY_INTERVAL)
        reading = (await self._readings.of(record, job, state)).after(state.progress)
        if problem := self._preconditions.to_begin(
            record, job, state, tiers=tiers, reading=reading, known=known.capacity
        ):
            return NotLoaded(record, problem, valid=problem.reason in UNBLAMED)
        if problem := self._preconditions.to_see(record, job):
            return NotLoaded(record, problem, valid=True)
        if state.stage is Stage.IDLE and not reading.known and not record.deleting:
            return NotLoaded(record)  # The first read of the log is in progress and requeues this job.
        loaded = self._observe(
            record, job, held=held, before=before, state=state, tiers=tiers, reading=reading, known=known
        )
        waits = time_until_log_read(loaded, self._logs, self._clock.now())
        return NotLoaded(record, requeue=waits) if waits else loaded

    def _tiers(self, record: JobRecord, job: TieredJob, known: KnownJob) -> Tiers:
        for name in job.spec.capacity_names:
            if named := self._capacity.get(name):
                known.capacity[name] = named
        return self._resolved.of(record, job, known.capacity)

    def _observe(
        self,
        record: JobRecord,
        job: TieredJob,
        *,
        held: TieredJobStatus,
        before: JobState,
        state: JobState,
        tiers: Tiers,
        reading: Reading,
        known: KnownJob,
    ) -> Loaded:
        workload = workload_of(job)
        seen, found = load.observe(
            record,
            state,
            workload=workload,
            clusters=self._clusters,
            tiers=tiers,
            reading=reading,
            blocked=known.blocked,
            outage=lambda number: self._outages.of(record.key, number, reading.progress),
            quiet_for=lambda number: self._outages.quiet_for(record.key, number),
            now=self._clock.now(),
            ticks=self._clock.ticks(),
        )
        return Loaded(
            record=record,
            job=job,
            workload=workload,
            tiers=tiers,
            capacity=MappingProxyType(dict(known.capacity)),
            reading=reading,
            spec=load.spec_of(
                self._resolved.spec(record, job, tiers),
                templates=self._specs.templates(record),
                reading=reading,
                attribution_window=self._attribution_window,
            ),
            status=held,
            before=before,
            state=state,
            seen=seen,
            found=found,
        )
