"""Follows the commit logs of jobs: the progress of each job, and whether the checkpoints belong to it.

Each read runs in a thread. A bucket has at most a few reads at a time, and so have the jobs of a namespace together. A
bucket that hangs delays only the jobs that use it, and of these only their progress. Outcomes are written in threads of
their own, so that no write waits for a read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import structlog

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.store import StoreRefused
from spotladder.checkpoints.store_check import StoreUnsafe
from spotladder.clusters.clock import Clock, wait_at_most
from spotladder.core.attempt_program import LAST_COMMIT_LIMIT
from spotladder.core.model import Progress, Seconds
from spotladder.core.reasons import Reason
from spotladder.errors import LogCorrupt, SpotladderError, StoreUnavailable, described
from spotladder.operator.condition_types import ConditionReason, Diagnosis
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.reading import Reading
from spotladder.operator.storage.allowed_addresses import Grant
from spotladder.operator.storage.pulse import Pulse
from spotladder.operator.threads import threaded
from spotladder.records.model import Record

T = TypeVar("T")
_log = structlog.get_logger("spotladder")


@dataclass(frozen=True, slots=True)
class _Lane:
    """Calls of one kind never wait for those of another. `total` is the maximum number of calls that are not overdue
    at a time, of all jobs, and `per_namespace` the maximum number of calls of the jobs of one namespace."""

    name: str
    total: int
    per_namespace: int


READS = _Lane("reads", 32, 8)
ENDINGS = _Lane("endings", 16, 4)
RECORDS = _Lane("records", 8, 4)
LANES = (READS, ENDINGS, RECORDS)

PER_BUCKET = 4
"""Maximum number of calls to one bucket for the jobs of one namespace at a time, of each lane. A bucket that answers
none of them is not called again until one has ended."""

READ_TIMEOUT: Seconds = 20.0
"""A read of a commit log that takes longer counts as no answer; the read continues in the background. While it waits
for its turn, the answers to other reads of the bucket count."""

QUEUED_LIMIT: Seconds = 60.0
"""Maximum time for which a decision waits for a read that waits for its turn at the bucket."""

DOUBTED_POLL_INTERVAL: Seconds = 2.0
"""Interval between two reads of the log of a job whose nodes seem to be silent."""

PROMPT: Seconds = 1.0
"""Maximum time that a reconcile, which occupies a worker, waits for the outcome to be written."""


@dataclass(frozen=True, slots=True)
class LogAddress:
    """The address of a job's log, its owner, and how it may be read."""

    job: str
    namespace: str
    uid: str
    uri: str
    grant: Grant = field(default_factory=Grant)

    @property
    def bucket(self) -> str:
        parts = urlsplit(self.uri)
        return f"{parts.scheme}://{parts.netloc}"


@dataclass(frozen=True, slots=True)
class EndOfLog:
    """A log that has the job's outcome: nothing is committed any more. `left` is why old checkpoints were not deleted,
    "" if they were."""

    left: str
    progress: Progress


class Log(Protocol):
    """The part of a commit log that the operator uses; called in threads."""

    def progress(self) -> Progress: ...
    def heartbeat(self) -> StoredHeartbeat | None: ...
    def is_held(self, attempt: int) -> bool: ...
    def end(self, outcome: str, attempt: int, message: str, keep: int) -> EndOfLog: ...
    def keep(self, texts: Mapping[Output, str]) -> None: ...
    def commits(self) -> tuple[Commit, ...]: ...
    def record(self, records: Sequence[Record], after: int | None) -> int: ...


class Logs:
    """Use as `async with Logs(…)`. Calls `changed` when a job's log has news."""

    def __init__(
        self,
        *,
        clock: Clock,
        changed: Callable[[JobKey], None],
        open_log: Callable[[LogAddress], Log],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._changed = changed
        self._open = open_log
        self._jitter = jitter
        self._followed: dict[JobKey, _Followed] = {}
        self._endings: dict[str, asyncio.Task[EndOfLog]] = {}  # by the uid of the job
        self._buckets = WeakValueDictionary[tuple[str, str], _Bucket]()  # Users name any bucket.
        self._threads = {lane: asyncio.Semaphore(lane.total) for lane in LANES}
        self._shares: dict[tuple[_Lane, str], asyncio.Semaphore] = {}

    async def __aenter__(self) -> Logs:
        return self

    async def __aexit__(self, *_: object) -> None:
        for key in list(self._followed):
            self.unfollow(key)
        for ending in self._endings.values():
            ending.cancel()

    def follow(self, key: JobKey, address: LogAddress, every: Seconds, *, standby: int = 0) -> Reading:
        """The newest reading; from now on the log is read every `every` seconds. `standby` is the standby attempt whose
        program may report that it is held; 0: none."""
        followed = self._followed.get(key)
        if followed is None or followed.address != address:
            self.unfollow(key)
            followed = self._followed[key] = _Followed(address, self._bucket(address))
            followed.task = asyncio.create_task(self._read_on(key, followed))
        if standby != followed.standby:
            followed.standby = standby
            followed.read_requested.set()
        followed.every = every
        return followed.reading

    def read_now(self, key: JobKey) -> None:
        """Read this job's log now."""
        if followed := self._followed.get(key):
            followed.read_requested.set()

    def doubt(self, jobs: Collection[JobKey]) -> None:
        """Read the logs of these jobs often, and the others as usual."""
        for key, followed in self._followed.items():
            followed.doubted, before = key in jobs, followed.doubted
            if followed.doubted and not before:
                followed.read_requested.set()

    def has_stopped(self, job: JobKey, *, ahead: Seconds = 0.0) -> bool:
        """Whether the heartbeats of the job's program have stopped, or will have in `ahead` seconds."""
        followed = self._followed.get(job)
        return followed is not None and followed.pulse.has_stopped(ahead=ahead)

    def time_until_read(self, key: JobKey, event: object) -> Seconds:
        """Maximum time until the log is read after `event`; 0 when it has been read, or when the log is not followed.
        `LAST_COMMIT_LIMIT` begins again with each answer to another read of the bucket: this one waits for its turn.

        The first call with a new `event` requests that read; the job is requeued when the read is complete.
        """
        followed = self._followed.get(key)
        if followed is None:
            return 0.0
        served = followed.bucket.served
        if followed.event != event:
            followed.event, followed.requested_at, followed.served = event, self._clock.ticks(), -1
            followed.requests += 1
            followed.up_to_date.clear()
            followed.read_requested.set()
        if followed.up_to_date.is_set():
            return 0.0
        if served != followed.served:
            followed.served, followed.event_at = served, self._clock.ticks()
        until = min(followed.event_at + LAST_COMMIT_LIMIT, followed.requested_at + QUEUED_LIMIT)
        return max(0.0, until - self._clock.ticks())

    def unfollow(self, key: JobKey) -> None:
        """Stop reading this log."""
        followed = self._followed.pop(key, None)
        if followed is not None and followed.task is not None:
            followed.task.cancel()

    async def end(self, address: LogAddress, outcome: str, attempt: int, message: str, *, keep: int) -> EndOfLog:
        """Record the job's outcome beside its checkpoints, delete all but the newest `keep`, and read
        the log. Raises what the log raises, and TimeoutError after `PROMPT` seconds: the write
        continues and requeues the job when it is complete; the next call then returns the result."""
        key = (address.namespace, address.job)

        def write() -> EndOfLog:
            return self._open(address).end(outcome, attempt, message, keep)

        begun = self._endings.get(address.uid)
        ending = self._endings[address.uid] = begun or asyncio.create_task(
            self._in_thread(address, write, lane=ENDINGS)
        )
        done, _ = await asyncio.wait({ending}, timeout=PROMPT)
        if not done:
            if begun is None:
                ending.add_done_callback(lambda _: self._changed(key))
            raise TimeoutError("the bucket has not answered yet")
        del self._endings[address.uid]
        return ending.result()

    async def keep(self, address: LogAddress, texts: Mapping[Output, str]) -> None:
        """Store the output of the job's programs beside its log. Raises what the log raises."""
        await self._in_thread(address, lambda: self._open(address).keep(texts))

    async def record(self, address: LogAddress, records: Sequence[Record], after: int | None) -> int:
        """Store records beside the log as one object, numbered after this one; None: after the newest. Returns its
        number. Raises what the log raises. Reads and outcomes have threads of their own, which this does not take."""
        return await self._in_thread(address, lambda: self._open(address).record(records, after), lane=RECORDS)

    async def _read_on(self, key: JobKey, followed: _Followed) -> None:
        log: Log | None = None

        def read() -> Reading:
            nonlocal log
            log, standby = log or self._open(followed.address), followed.standby
            progress, beat = log.progress(), log.heartbeat()
            held = standby if standby and log.is_held(standby) else 0
            return Reading(
                True, progress, held=held, hung=beat.hang if beat else "", heartbeat=beat, commits=log.commits()
            )

        while True:
            followed.read_requested.clear()
            requests, awaited = followed.requests, not followed.up_to_date.is_set()
            began = self._clock.ticks()
            reading = await self._read(followed, read)
            followed.pulse.read(reading.heartbeat, began, self._clock.ticks())
            reading = replace(reading, stopped=followed.pulse.has_stopped())
            news, followed.reading = reading != followed.reading, reading
            if requests == followed.requests:
                followed.up_to_date.set()
            if news or awaited:
                self._changed(key)
            usual = followed.every * (0.75 + self._jitter() / 2)
            pause = min(usual, DOUBTED_POLL_INTERVAL) if followed.doubted else usual
            await wait_at_most(self._clock, pause, followed.read_requested)

    async def _read(self, followed: _Followed, read: Callable[[], Reading]) -> Reading:
        before = followed.reading
        began = asyncio.Event()
        reading = asyncio.ensure_future(self._in_thread(followed.address, read, began))
        try:
            if await self._is_silent(followed.address, reading, began) and not before.unreadable:
                late = f"{followed.address.uri}: no answer in {READ_TIMEOUT:g} s; progress is unknown"
                late = _hidden(followed.address) if followed.address.grant.chosen else late
                since = before.away_since or self._clock.now()
                followed.reading = replace(before, known=True, unreadable=late, away_since=since, stopped=False)
                followed.up_to_date.set()
                self._changed((followed.address.namespace, followed.address.job))
            return await reading
        except ForeignLog as error:
            reason, why = ConditionReason.CHECKPOINTS_IN_USE, error.message_for(followed.address.namespace)
            return Reading(True, before.progress, refused=Diagnosis(reason, why))
        except LogCorrupt as error:
            refused = Diagnosis(ConditionReason.CHECKPOINTS_CORRUPT, str(error))
            return Reading(True, before.progress, refused=refused)
        except StoreUnsafe as error:
            return Reading(True, before.progress, refused=Diagnosis(Reason.STORE_UNSAFE, str(error)))
        except StoreUnavailable as error:
            away = None if isinstance(error, StoreRefused) else followed.reading.away_since or self._clock.now()
            return Reading(True, before.progress, unreadable=str(error), away_since=away)
        except SpotladderError as error:
            return Reading(True, before.progress, unreadable=str(error))
        except Exception as error:  # noqa: BLE001 – a defect must not end the task that reads this log
            _log.error("reading a commit log failed with an unexpected error", uri=followed.address.uri, exc_info=error)
            return Reading(True, before.progress, unreadable=f"{followed.address.uri}: {described(error)}")
        finally:
            reading.cancel()  # The log is no longer followed: a read that waits for its turn gives it up.

    async def _is_silent(self, address: LogAddress, reading: asyncio.Future[Reading], began: asyncio.Event) -> bool:
        """Whether the read has not completed in time."""
        bucket = self._bucket(address)
        while True:
            served, had_begun = bucket.served, began.is_set()
            done, _ = await asyncio.wait({reading}, timeout=READ_TIMEOUT)
            if done or had_begun or bucket.served == served:
                return not done

    async def _in_thread(
        self, address: LogAddress, work: Callable[[], T], began: asyncio.Event | None = None, *, lane: _Lane = READS
    ) -> T:
        """The result of `work` in a thread, in its turn. A namespace never has more than its share in the queue for the
        total, so that no other one waits long. A cancellation does not end the thread: until it has ended, it counts. A
        call that is overdue no longer counts towards the total: a store without answers does not stop the others."""
        bucket, total = self._bucket(address), self._threads[lane]
        share = self._shares.setdefault((lane, address.namespace), asyncio.Semaphore(lane.per_namespace))
        with ExitStack() as waiting:
            for limit in (bucket.gates[lane], share):
                await limit.acquire()
                waiting.callback(limit.release)
            await total.acquire()
            of_total = waiting.enter_context(ExitStack())
            of_total.callback(total.release)
            running = asyncio.ensure_future(threaded(work))  # Raises RuntimeError if the process may have no thread.
            own = waiting.pop_all()
        if began is not None:
            began.set()
        late = asyncio.get_running_loop().call_later(READ_TIMEOUT, of_total.close)

        def ended(call: asyncio.Future[T]) -> None:
            late.cancel()
            own.close()
            bucket.served += lane is READS
            if not call.cancelled():
                call.exception()  # It may be that nothing awaits it any more.

        running.add_done_callback(ended)
        try:
            return await asyncio.shield(running)
        except (ForeignLog, LogCorrupt, StoreUnsafe):  # A store has answered.
            raise
        except Exception as error:
            if not address.grant.chosen:
                raise
            _log.warning("a chosen endpoint failed", uri=address.uri, namespace=address.namespace, error=str(error))
            raise StoreUnavailable(_hidden(address)) from None

    def _bucket(self, address: LogAddress) -> _Bucket:
        """The bucket as the namespace reaches it: another namespace may use a different endpoint for the same name."""
        return self._buckets.setdefault((address.namespace, address.bucket), _Bucket())


def _hidden(address: LogAddress) -> str:
    """The message about a chosen endpoint, the same for one that is closed, slow or not a store."""
    return f"{address.uri}: the endpoint of the Secret cannot be reached or is not allowed"


@dataclass(slots=True, weakref_slot=True)
class _Bucket:
    """The gate of each lane admits `PER_BUCKET` calls at a time; `served` is the number of reads that have ended."""

    gates: dict[_Lane, asyncio.Semaphore] = field(
        default_factory=lambda: {lane: asyncio.Semaphore(PER_BUCKET) for lane in LANES}
    )
    served: int = 0


@dataclass(slots=True)
class _Followed:
    """`requests` counts the events after which a read was requested; `event` is the last of them, and `requested_at`
    its time in ticks. `event_at` is when the bucket, which had answered `served` reads then, last answered.
    `up_to_date`: no requested read is outstanding.
    `doubted`: the job's nodes seem to be silent."""

    address: LogAddress
    bucket: _Bucket
    every: Seconds = 30.0
    standby: int = 0
    doubted: bool = False
    reading: Reading = field(default_factory=Reading)
    pulse: Pulse = field(default_factory=Pulse)
    task: asyncio.Task[None] | None = None
    read_requested: asyncio.Event = field(default_factory=asyncio.Event)
    requests: int = 0
    event: object = None
    requested_at: Seconds = 0.0
    event_at: Seconds = 0.0
    served: int = -1
    up_to_date: asyncio.Event = field(default_factory=asyncio.Event)
