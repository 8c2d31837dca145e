"""The leader runtime: fills the caches, reconciles every job once, and then each job that an event concerns."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

import structlog

from spotladder.api.capacitytier import HOME, PriceSource
from spotladder.api.stored import CapacityRecord, JobRecord
from spotladder.clusters.cache import Cache, Scoped
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock, CorrectedClock
from spotladder.clusters.election import NotLeading
from spotladder.clusters.queue import Queue
from spotladder.clusters.registry import ConnectionSource
from spotladder.clusters.skew import correction
from spotladder.clusters.throttle import Throttle
from spotladder.core.model import Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.gc_freeze import gc_frozen
from spotladder.operator.inventory.clusters import Clusters, WorkloadCluster, selector
from spotladder.operator.inventory.inventory import Inventory, JobKey
from spotladder.operator.inventory.monitor import ClusterMonitor
from spotladder.operator.inventory.silence import SilenceWatch
from spotladder.operator.prices import PriceReader, Prices
from spotladder.operator.reconcile.apply import Applier
from spotladder.operator.reconcile.attempt_removal import AttemptRemover
from spotladder.operator.reconcile.execute import Executor
from spotladder.operator.reconcile.loader import Loader
from spotladder.operator.reconcile.namespace_budget import over_budget
from spotladder.operator.reconcile.persist import Persistence
from spotladder.operator.reconcile.preconditions import Preconditions
from spotladder.operator.reconcile.preflight import Preflight
from spotladder.operator.reconcile.reconciler import Reconciler
from spotladder.operator.reporting.events import Events
from spotladder.operator.reporting.health import Health
from spotladder.operator.reporting.metrics import Metrics
from spotladder.operator.reporting.tier_status import TierStatusWriter
from spotladder.operator.settings import Settings
from spotladder.operator.storage.bucket_log import bucket_logs
from spotladder.operator.storage.commit_logs import Log, LogAddress, Logs
from spotladder.operator.storage.credentials import SecretReader
from spotladder.operator.storage.outages import Outages
from spotladder.operator.storage.outputs import Outputs
from spotladder.operator.storage.readings import Readings
from spotladder.operator.storage.record_streams import RecordStreams
from spotladder.price_sources import sources as all_price_sources
from spotladder.resources import CAPACITYTIERS, TIEREDJOBS

RESTART_INTERVAL: Seconds = 5.0
"""Delay before a background task that crashed is started again."""

CALL: Seconds = 15.0
"""Timeout of a call to a member cluster, which occupies a worker."""

FIRST_LIST_TIMEOUT: Seconds = 120.0
"""Time that a new leader waits for the first list of a kind while the API server does not answer. After that, the
jobs that need the kind are held, and the others are reconciled."""

CANCEL_INTERVAL: Seconds = 5.0
"""Interval after which a background task that still runs is cancelled again at the end of the term."""

FIRST_LIST_POLL_INTERVAL: Seconds = 0.5
"""Interval between two checks of these lists."""


class LeaderRuntime:
    """One term of leadership: its state is dropped when the lease is lost. `identity` is written into Events."""

    def __init__(
        self,
        *,
        client: Client,
        sources: Mapping[str, ConnectionSource],
        settings: Settings,
        metrics: Metrics,
        clock: Clock,
        identity: str,
        open_log: Callable[[LogAddress], Log] | None = None,
        price_sources: Mapping[PriceSource, PriceReader] | None = None,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        clock = self._clock = CorrectedClock(clock, lambda: correction(client.ahead))
        self._log = structlog.get_logger("spotladder")
        self._term_over = False
        self.queue: Queue[JobKey] = Queue(clock)
        metrics.queue_depth.set_function(lambda: self.queue.depth)
        self.jobs: Scoped[JobRecord] = Scoped(
            Cache(
                client,
                TIEREDJOBS,
                JobRecord.of,
                clock=clock,
                namespace=namespace,
                group=lambda job: job.folder,
                changed=self._job_changed,
            )
            for namespace in settings.namespaces or ("",)
        )
        self.capacity: Cache[CapacityRecord] = Cache(
            client, CAPACITYTIERS, CapacityRecord.of, clock=clock, changed=lambda _before, _after: self._enqueue_all()
        )
        self._guard = client.guard
        self.inventory = Inventory(client, clock=clock, namespaces=settings.namespaces, wake=self.queue.add_changed)
        self.clusters = Clusters(
            WorkloadCluster(HOME, client, self.inventory, most=settings.workers, reference=client),
            sources,
            join=self._join,
            clock=clock,
            changed=self._cluster_changed,
        )
        self._preflight = Preflight(self.clusters, clock=clock, changed=self.queue.add)
        self._logs = Logs(clock=clock, changed=self.queue.add, open_log=open_log or bucket_logs())
        self._silence = SilenceWatch(
            self.clusters,
            programs=self._logs,
            clock=clock,
            suspected=lambda name: metrics.suspected_nodes.labels(name).inc(),
        )
        self._outputs = Outputs(self._logs, clock=clock, changed=self.queue.add)
        self._streams = RecordStreams(self._logs, clock=clock, no_backlog=self.queue.idle)
        self._outages = Outages(clock=clock, changed=self.queue.add)
        self._prices = Prices(price_sources or all_price_sources(), clock=clock, changed=self._enqueue_all)
        self._tier_status = TierStatusWriter(
            client,
            capacity=self.capacity,
            jobs=self.jobs,
            pods=self.clusters.pods_of,
            prices=self._prices,
            clusters=self.clusters.names,
            clock=clock,
        )
        self._events = Events(client, clock=clock, instance=identity, no_backlog=self.queue.idle)
        remover = AttemptRemover(self.clusters)
        readings = Readings(self._logs, SecretReader(client, clock), settings.tenancy)
        persistence = Persistence(client, self.jobs, self._events, metrics, self._tier_status, clock)
        preconditions = Preconditions(self.jobs, self.clusters, clock, settings.tenancy)
        applier = Applier(
            self.clusters,
            remover=remover,
            preflight=self._preflight,
            environment=settings.environment,
            rules=settings.tenancy,
            over_budget=lambda namespace: over_budget(settings.tenancy, self.jobs.all(), namespace, self._clock.now()),
        )
        self.reconcile = Reconciler(
            jobs=self.jobs,
            clusters=self.clusters,
            loader=Loader(
                capacity=self.capacity,
                clusters=self.clusters,
                preconditions=preconditions,
                persistence=persistence,
                logs=self._logs,
                outages=self._outages,
                readings=readings,
                prices=self._prices,
                clock=clock,
                attribution_window=settings.settle,
            ),
            executor=Executor(applier, remover, self._preflight, self.jobs, self._logs, self._outputs),
            preconditions=preconditions,
            remover=remover,
            preflight=self._preflight,
            persistence=persistence,
            logs=self._logs,
            outputs=self._outputs,
            streams=self._streams,
            outages=self._outages,
            readings=readings,
            metrics=metrics,
            clock=clock,
        )

    @property
    def caches(self) -> list[Cache[Any]]:
        """The caches of the home cluster."""
        return [*self.jobs.caches, self.capacity, *self.inventory.caches]

    @property
    def health(self) -> Health:
        """Whether all required kinds can be read."""
        needed: list[Cache[Any]] = [*self.jobs.caches, self.capacity, *self.inventory.required]
        for cache in needed:
            if cache.problem:
                where = f" in {cache.namespace}" if cache.namespace else ""
                return Health("leading", f"{cache.kind.plural}{where}: {_advice(cache)}")
            if not cache.has_synced:
                return Health("leading", f"{cache.kind.plural} are being listed")
        return Health("leading")

    async def run(self) -> None:
        """Work until cancelled. Raises NotLeading if a write found that the lease is lost."""
        async with self.ready(), asyncio.TaskGroup() as tasks:
            self._enqueue_all()
            for work in (self.queue.run(), self._resync(), *(self._work() for _ in range(self._settings.workers))):
                tasks.create_task(self._ending_the_term(work))
            until_cancelled = asyncio.get_running_loop().create_future()  # by the caller, or because a task has failed
            await self._ending_the_term(until_cancelled)

    async def _ending_the_term(self, work: Awaitable[None]) -> None:
        """Do the work; its end, for whatever reason, ends the term."""
        try:
            await work
        finally:
            self._term_over = True

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """Returns when all kinds are listed; keeps the caches current from then on."""
        works = (self._events.run, self._tier_status.run, self.clusters.run, self._silence.run)
        async with self._logs, self._outputs, self._streams, self._outages, self._prices, self._preflight:
            caches = (cache.run() for cache in self.caches)
            running = [asyncio.create_task(work) for work in (*caches, *map(self._restarting, works))]
            try:
                began = self._clock.ticks()
                with gc_frozen():
                    await asyncio.gather(*(cache.wait_for_sync() for cache in self.caches))
                    await self._first_lists_answered(began + FIRST_LIST_TIMEOUT)
                jobs = sum(len(cache) for cache in self.jobs.caches)
                self._log.info("caught up", jobs=jobs, seconds=round(self._clock.ticks() - began, 3))
                yield
            finally:
                await _ended(running)
                gc.unfreeze()  # The caches may be garbage now.

    async def _first_lists_answered(self, until: Seconds) -> None:
        """Return when no first list of a kind waits for an answer, but not after `until`. An overloaded API server
        answers late: every job would be held, and released again seconds later."""
        while any(cache.silent and not cache.has_synced for cache in self.caches) and self._clock.ticks() < until:
            await self._clock.sleep(FIRST_LIST_POLL_INTERVAL)

    async def _restarting(self, work: Callable[[], Awaitable[None]]) -> None:
        """Background tasks run for the whole term: a crash is logged, and the task is started again."""
        while True:
            try:
                return await work()
            except NotLeading:
                return  # The reconciles will find this out too.
            except Exception as error:  # noqa: BLE001 – otherwise the crash would not be logged
                self._log.error("a background task has failed with an unexpected error", exc_info=error)
            await self._clock.sleep(RESTART_INTERVAL)

    async def _work(self) -> None:
        """Reconcile jobs until the term ends. A call that fails at the moment in which it is cancelled may hide the
        cancellation: without `_term_over`, the worker would wait for a job, and the term with its lease would never
        end."""
        while not self._term_over:
            key = await self.queue.get()
            failed = True
            after = None
            try:
                after = await self._one(key)
                failed = False
                if after is None and self.jobs.get(key[1], key[0]) is None:  # Nothing of the job is left.
                    self.queue.forget(key)
            except NotLeading:
                raise
            except SpotladderError as error:
                self._failed(key, error)
            except Exception as error:  # noqa: BLE001 – a defect in one job's pass must not stop the others
                self._failed(key, error, defect=True)
            finally:
                self.queue.done(key, failed=failed)
            if after is not None:
                self.queue.add_at(key, after)

    async def _one(self, key: JobKey) -> float | None:
        with self._metrics.passes.time():
            return await self.reconcile(key)

    def _failed(self, key: JobKey, error: Exception, *, defect: bool = False) -> None:
        self._metrics.failed_passes.labels(type(error).__name__).inc()
        log = self._log.bind(namespace=key[0], job=key[1], failures=self.queue.failures(key) + 1)
        if defect:
            log.error("a reconcile failed with an unexpected error", exc_info=error)
        else:
            log.warning("a reconcile failed", error=str(error))

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(self._settings.resync)
            for job in list(self.jobs.all()):
                self.queue.add_at(job.key, random.random() * min(60.0, self._settings.resync))  # noqa: S311

    def _join(self, name: str, source: ConnectionSource, home: str) -> WorkloadCluster:
        """A member cluster with its own client, share of the workers, caches and monitor."""
        throttle = Throttle(self._settings.calls_per_second, self._settings.burst, self._clock)
        client = Client(clock=self._clock, throttle=throttle, guard=self._guard, timeout=CALL)
        inventory = Inventory(
            client,
            clock=self._clock,
            namespaces=self._settings.namespaces,
            labels=selector(home),
            wake=self.queue.add_changed,
        )
        monitor = ClusterMonitor(
            name,
            source,
            client,
            lambda: inventory.caches,
            clock=self._clock,
            changed=lambda: self._cluster_changed(name),
        )
        client.watcher = self._metrics.watcher(name, monitor.heard)
        most = max(1, self._settings.workers // len(self.clusters.names))
        reference = self.clusters.home.client
        return WorkloadCluster(name, client, inventory, monitor=monitor, home=home, most=most, reference=reference)

    def _cluster_changed(self, name: str) -> None:
        cluster = self.clusters.of(name)
        up = cluster is not None and not cluster.problem
        self._metrics.cluster_up.labels(name).set(1 if up else 0)
        if up:
            self._preflight.reconnected(name)
        for key in cluster.inventory.jobs() if cluster is not None else ():
            self.queue.add(key)  # Includes jobs whose TieredJob no longer exists.
        self._enqueue_all()

    def _job_changed(self, before: JobRecord | None, after: JobRecord | None) -> None:
        record = after or before
        if record is not None:
            self.queue.add_changed(record.key)
            if after is None:  # Jobs that had to wait for this one may start now.
                for other in self.jobs.of(record.folder):
                    self.queue.add(other.key)

    def _enqueue_all(self) -> None:
        for job in self.jobs.all():
            self.queue.add(job.key)


async def _ended(tasks: Collection[asyncio.Task[None]]) -> None:
    """Cancel the tasks until they have ended: a task that suppresses its cancellation would extend the term."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=CANCEL_INTERVAL)


def _advice(cache: Cache[Any]) -> str:
    if cache.absent and cache.kind in (TIEREDJOBS, CAPACITYTIERS):
        return "the cluster does not have the kind: install the chart spotladder-crds"
    return cache.problem
