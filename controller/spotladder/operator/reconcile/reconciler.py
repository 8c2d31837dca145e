"""Reconciles one TieredJob: load → decide → apply, then one status write, then Events.

1. `core.decide` decides. This module adds what Kubernetes needs: names, preconditions, finalizers, conditions.
2. Actions execute the state that an earlier reconcile persisted; a new state is persisted before its actions.
3. The status is written once, with the resourceVersion that was read as its precondition, and only if it changed. A
   conflict means that the job was written in the meantime: it is requeued, which is not an error.
4. Events and metrics report only what was persisted.
5. A job that is being deleted is suspended first (it commits and stops), then its attempts are removed, then its
   finalizer. The annotation `spotladder.io/force-delete` removes the finalizer at once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import JobRecord, status_of
from spotladder.clusters.cache import Scoped
from spotladder.clusters.clock import Clock
from spotladder.clusters.errors import ApiError, ClusterUnreachable, Conflict, NotFound, Throttled
from spotladder.core.acting import ACTION_RETRY_INTERVAL
from spotladder.core.lifecycle import decide
from spotladder.core.model import (
    TERMINAL,
    Decision,
    JobState,
    Launch,
    Seconds,
    Stage,
)
from spotladder.core.observing import with_log_at_end
from spotladder.errors import SpotladderError
from spotladder.operator.condition_types import ConditionReason, ConditionType, ConditionUpdates, Diagnosis
from spotladder.operator.inventory.clusters import Busy, Clusters
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.reading import Reading
from spotladder.operator.reconcile import conditions, status
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.execute import Executor
from spotladder.operator.reconcile.loader import Loader, policy_named
from spotladder.operator.reconcile.persist import Persistence
from spotladder.operator.reconcile.preconditions import Preconditions, versions
from spotladder.operator.reconcile.preflight import MISSING_RETRY_INTERVAL, Preflight, needs
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.storage import credentials
from spotladder.operator.storage.commit_logs import Logs
from spotladder.operator.storage.outages import Outages
from spotladder.operator.storage.outputs import Outputs
from spotladder.operator.storage.readings import Readings
from spotladder.operator.storage.record_streams import RecordStreams

OUTCOME_RETRY_INTERVAL: Seconds = 60.0
"""Requeue delay for a job whose outcome could not be written to the commit log."""

BUSY_RETRY_INTERVAL: Seconds = 0.5
"""Requeue delay for a job whose clusters have no free worker slot."""


@dataclass(slots=True)
class Reconciler:
    """Called with a job's key; returns the maximum number of seconds until the next call."""

    jobs: Scoped[JobRecord]
    clusters: Clusters
    loader: Loader
    executor: Executor
    preconditions: Preconditions
    remover: AttemptRemover
    preflight: Preflight
    persistence: Persistence
    logs: Logs
    outputs: Outputs
    streams: RecordStreams
    outages: Outages
    readings: Readings
    metrics: Metrics
    clock: Clock

    async def __call__(self, key: JobKey) -> Seconds | None:
        """Reconcile the job once. Raises ClusterUnreachable, Throttled, …: retry later. An unexpected error is also
        raised, after the job has the condition `Degraded`."""
        namespace, name = key
        record, known = self.jobs.get(name, namespace), self.loader.known_jobs.get(key)
        if record is not None and known is not None and known.uid != record.uid:
            self._forget(key)  # Another job had this name.
        try:
            if record is None or (record.deleting and not record.finalized):
                self._forget(key)
                return ACTION_RETRY_INTERVAL if await self.executor.sweep(key, "") else None
            return await self._pass(record)
        except Busy:
            return BUSY_RETRY_INTERVAL
        except Conflict:
            return 0.2  # The cache will soon receive the newer version.
        except NotFound as error:
            if self.jobs.get(name, namespace) is None:
                return None
            raise ClusterUnreachable(str(error)) from None
        except SpotladderError:
            raise
        except Exception as error:
            await self._report(key, error)
            raise

    async def _report(self, key: JobKey, error: Exception) -> None:
        """Show an unexpected error to the user. If this fails too, the next reconcile tries again."""
        namespace, name = key
        if (record := self.jobs.get(name, namespace)) is not None:
            with suppress(Exception):
                await self.persistence.held(record, status_of(record), conditions.of_error(error), valid=True)

    # --- load → decide → apply --------------------------------------------------------------------------------------

    async def _pass(self, record: JobRecord) -> Seconds | None:
        loaded = await self.loader.load(record)
        if isinstance(loaded, Loaded):
            return await self._apply(loaded, *self._decide(loaded))
        if loaded.problem is not None:
            return await self._hold(loaded.record, status_of(record), loaded.problem, valid=loaded.valid)
        return loaded.requeue

    def _decide(self, loaded: Loaded) -> tuple[Decision, Diagnosis | None]:
        """The core's decision, without the launches that the commit log forbids, and why it forbids them."""
        policy = policy_named(loaded.job.spec.policy)
        decision = decide(loaded.spec, loaded.state, loaded.seen, self.clock.now(), policy)
        problem = self.preconditions.to_launch(decision.state, loaded.reading)
        if problem is None and loaded.reading.known:  # The first read of the log requeues this job.
            return decision, None
        others = tuple(action for action in decision.actions if not isinstance(action, Launch))
        withheld = problem if others != decision.actions else None
        return replace(decision, actions=others), withheld

    async def _apply(self, loaded: Loaded, decision: Decision, withheld: Diagnosis | None) -> Seconds | None:
        """Execute the actions, then persist the new state. Returns when the job is due again."""
        record, job = loaded.record, loaded.job
        known = self.loader.known_jobs[record.key]
        address = partial(self.readings.address, record, job)
        self.outputs.collect(loaded, address)
        self.outages.watch(loaded)
        if decision.state.attempt is None or decision.state.attempt.seen:
            known.blocked = None
        if withheld is not None:
            known.blocked = withheld
        result = await self.executor.execute(loaded, decision, address=address)
        if result.tried:
            known.blocked = result.blocked
        if result.at_end is not None:
            decision = replace(decision, state=with_log_at_end(decision.state, result.at_end))
        problems = self.preconditions.of_started_job(loaded, known.blocked)
        for error in (result.failed, result.cleanup_error):
            if isinstance(error, ApiError) and not isinstance(error, Throttled):
                problems.append(Diagnosis(ConditionReason.BLOCKED, str(error)))
        problems = conditions.with_impediment(problems, loaded.spec, decision.state, loaded.seen)
        updates = {**result.updates, **self._preflight_updates(loaded)}
        persisted = await self.persistence.decided(loaded, decision, problems, updates)
        self.streams.decided(loaded, decision, address, persisted=persisted is not loaded.status)
        before = loaded.before if persisted is loaded.status else decision.state
        known.persisted, known.before, known.state = persisted.state, before, decision.state
        self.metrics.observe(record.key, loaded.spec, decision.state, [problem.reason for problem in problems])
        if result.failed is not None:
            raise result.failed
        if result.cleanup_error is not None and record.deleting:
            raise result.cleanup_error
        if record.deleting and self._may_release(loaded, decision):
            await self._release(record)
            return None
        # A slow or failed cleanup and an operator that does not act trigger no event: poll.
        polls = record.deleting or result.cleanup_error is not None or decision.state.stage is Stage.STARTING
        return self._wake(decision, before, updates, loaded.reading, polls=polls)

    def _wake(
        self, decision: Decision, persisted: JobState, updates: ConditionUpdates, reading: Reading, *, polls: bool
    ) -> Seconds | None:
        now = self.clock.now()
        times = [] if decision.wake_at is None else [max(0.0, decision.wake_at - now)]
        if (due := status.due_in(persisted, decision.state, jobs=len(self.jobs))) is not None:
            times.append(due)
        if any(update.status == "Unknown" for update in updates.values()):
            times.append(OUTCOME_RETRY_INTERVAL)
        if reading.unreadable:  # A new Secret triggers no event.
            times.append(credentials.MISSING_RETRY_INTERVAL if reading.locked else credentials.SECRET_TTL)
        if (ahead := updates.get(ConditionType.PREFLIGHT)) and ahead.reason == ConditionReason.REFERENCES_MISSING:
            times.append(MISSING_RETRY_INTERVAL)
        if polls:
            times.append(ACTION_RETRY_INTERVAL)
        return min(times, default=None)

    def _preflight_updates(self, loaded: Loaded) -> ConditionUpdates:
        """Whether the tiers have the objects to which the job's pods refer."""
        if loaded.state.stage in TERMINAL or loaded.record.deleting:
            self.preflight.forget(loaded.record.key)
            return {}
        version = versions(loaded.record, loaded.job, loaded.capacity)
        return conditions.of_preflight(
            self.preflight.check(loaded.record.key, version, lambda: needs(loaded.job, loaded.tiers.resolved.values()))
        )

    async def _hold(
        self, record: JobRecord, held: TieredJobStatus, problem: Diagnosis, *, valid: bool = False
    ) -> Seconds | None:
        if record.deleting and (record.forced or not valid):
            return await self._dismantle(record)
        await self.persistence.held(record, held, problem, valid=valid)
        if problem.reason is ConditionReason.CHECKPOINTS_NOT_ALLOWED:
            return credentials.SECRET_TTL  # a Secret that changes triggers no event
        return 5.0 if valid else None

    # --- the end of a TieredJob -------------------------------------------------------------------------------------

    def _may_release(self, loaded: Loaded, decision: Decision) -> bool:
        if loaded.record.forced:
            return True
        over = decision.state.stage in (Stage.SUSPENDED, *TERMINAL) and decision.state.attempt is None
        return over and not decision.moves and not loaded.found.attempts

    async def _dismantle(self, record: JobRecord) -> Seconds | None:
        """An invalid job is being deleted: no program can be asked to commit, so remove its objects."""
        found = self.clusters.attempts(record, lambda _objects: None).attempts.values()
        if any(not entry.cluster.problem for entry in found) and not record.forced:
            await self.remover.remove_all(record)
            return 2.0
        await self._release(record)
        return None

    async def _release(self, record: JobRecord) -> None:
        await self.persistence.release(record)
        self._forget(record.key)

    def _forget(self, key: JobKey) -> None:
        if (known := self.loader.known_jobs.pop(key, None)) is not None:
            self.outputs.forget(known.uid)
            self.streams.forget(known.uid)
        self.preconditions.forget(key)
        self.logs.unfollow(key)
        self.outages.forget(key)
        self.preflight.forget(key)
        self.metrics.forgot(key)
