"""Writes the records of jobs beside their commit logs, in the background.

1. Records are made after a decision is persisted. Nothing waits for their write, and nothing is decided by them.
2. Records of a change are written at once, or when no job waits any more; others with them or after `WRITE_INTERVAL`.
3. While the bucket does not answer, writes are retried for a limited time and at most `MAX_PENDING` records of a job
   are kept; then the oldest are dropped. Refused writes are not retried. The next write says how many are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import structlog

from spotladder.api.tier_history import history_in
from spotladder.clusters.clock import Clock, wait_at_most
from spotladder.core.contract import Milestone
from spotladder.core.model import NOTHING_KNOWN, TERMINAL, Decision, JobState, KnownCapacity, Seconds, Stage
from spotladder.errors import SpotladderError
from spotladder.operator.loaded import Loaded
from spotladder.operator.storage.commit_logs import Logs
from spotladder.operator.storage.milestones import reached
from spotladder.operator.storage.retries import Address, retried
from spotladder.records.model import Began, Committed, Decided, Ended, Lost, Moved, NodeChanged, Noted, Reached, Record
from spotladder.records.recorder import Recorder
from spotladder.records.sampling import Sampler

WRITE_INTERVAL: Seconds = 300.0
"""Interval between two writes without a change of the job's stage, a loss, a notice or a first step."""

MAX_PENDING = 2_000
"""Maximum number of records of a job that wait for a write."""

BACKLOG_TIMEOUT: Seconds = 10.0
"""Maximum time for which a write waits while jobs wait or are reconciled."""

CLOSE_TIMEOUT: Seconds = 2.0
"""Time that a controller waits for pending writes when it stops."""

_URGENT = (Began, Moved, Lost, NodeChanged, Ended)

_log = structlog.get_logger("spotladder")


@dataclass(slots=True)
class _Stream:
    """The stream of one job. `number` is that of the last object that was written; None: unknown. `lost` is the number
    of records that were dropped since the last write, `written_at` the ticks of that."""

    recorder: Recorder
    sampler: Sampler
    address: Address
    pending: list[Record] = field(default_factory=list)
    number: int | None = None
    lost: int = 0
    written_at: Seconds = 0.0
    writing: asyncio.Task[None] | None = None


class RecordStreams:
    """Use as `async with RecordStreams(…)`: the exit waits for pending writes for `CLOSE_TIMEOUT` and cancels them.
    `no_backlog` is set while no job waits or is reconciled."""

    def __init__(self, logs: Logs, *, clock: Clock, no_backlog: asyncio.Event) -> None:
        self._logs = logs
        self._clock = clock
        self._no_backlog = no_backlog
        self._closing = asyncio.Event()
        self._streams: dict[str, _Stream] = {}
        self._writing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> RecordStreams:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        for uid in list(self._streams):
            self.forget(uid)
        if self._writing:
            await asyncio.wait(self._writing, timeout=CLOSE_TIMEOUT)
        for task in self._writing:
            task.cancel()
        await asyncio.gather(*self._writing, return_exceptions=True)

    def decided(self, loaded: Loaded, decision: Decision, address: Address, *, persisted: bool) -> None:
        """Record the decision if it was persisted. Raises nothing."""
        try:
            stream = self._stream(loaded, address)
            stream.recorder.charge(loaded.spec, loaded.state, decision.state.clock)
            if persisted:
                self._take(stream, list(_records(stream.recorder, loaded, decision)), decision.state)
        except Exception as error:  # noqa: BLE001 – a defect here must not stop the job
            _log.error("recording a decision failed with an unexpected error", exc_info=error)

    def forget(self, uid: str) -> None:
        """Forget a job that is gone; its pending records are written."""
        if (stream := self._streams.pop(uid, None)) is not None:
            stream.pending += stream.sampler.take()
            self._write_soon(stream)

    def _stream(self, loaded: Loaded, address: Address) -> _Stream:
        record = loaded.record
        stream = self._streams.get(record.uid)
        if stream is None:
            policy = loaded.job.spec.policy
            first = []
            if loaded.before.last_number == 0 and loaded.before.clock == 0.0:
                known = tuple(_known(loaded, tier.capacity_tier) for tier in loaded.job.spec.tiers)
                spec = loaded.spec
                first = [Began(record.created_at, record.name, record.namespace, spec, policy=policy, known=known)]
            specified = (loaded.spec, policy) if first else None
            stream = self._streams[record.uid] = _Stream(
                Recorder(record.name, record.namespace, specified), Sampler(record.created_at), address
            )
            stream.pending += first
        stream.address = address
        return stream

    def _take(self, stream: _Stream, records: list[Record], state: JobState) -> None:
        for record in records:
            stream.pending += stream.sampler.due(record)
        over = state.stage in TERMINAL or state.stage is Stage.SUSPENDED
        if over:
            stream.pending += stream.sampler.take()
        if excess := max(0, len(stream.pending) - MAX_PENDING):
            del stream.pending[:excess]
            stream.lost += excess
        due = self._clock.ticks() - stream.written_at >= WRITE_INTERVAL
        if over or due or any(map(_is_urgent, stream.pending)):
            self._write_soon(stream)

    def _write_soon(self, stream: _Stream) -> None:
        if not stream.pending or (stream.writing is not None and not stream.writing.done()):
            return  # A write that is in progress takes the rest when it is done.
        stream.writing = asyncio.create_task(self._write(stream))
        self._writing.add(stream.writing)
        stream.writing.add_done_callback(self._writing.discard)

    async def _write(self, stream: _Stream) -> None:
        while stream.pending:
            if not self._no_backlog.is_set():  # While many jobs fall back at once, decisions go first.
                await wait_at_most(self._clock, BACKLOG_TIMEOUT, self._no_backlog, self._closing)
            records, stream.pending, lost, stream.lost = stream.pending, [], stream.lost, 0
            missing = Noted(records[0].at, f"{lost} records are missing: the checkpoint store did not take them")
            stream.written_at = self._clock.ticks()
            if not await self._written(stream, [missing, *records] if lost else records):
                stream.lost += lost + len(records)
                return

    async def _written(self, stream: _Stream, records: list[Record]) -> bool:
        try:
            stream.number = await retried(
                self._clock, stream.address, lambda log: self._logs.record(log, tuple(records), stream.number)
            )
        except SpotladderError as error:
            _log.warning("the records of a job could not be stored", error=str(error))
            return False
        except Exception as error:  # noqa: BLE001 – a defect here must not end the controller
            _log.error("writing records failed with an unexpected error", exc_info=error)
            return False
        return True


def _is_urgent(record: Record) -> bool:
    """A start has many milestones, but ends with its first step: they are written together."""
    first_step = isinstance(record, Reached) and record.milestone is Milestone.STEPPED
    return first_step or isinstance(record, _URGENT)


def _records(recorder: Recorder, loaded: Loaded, decision: Decision) -> Iterator[Record]:
    spec, before, after, seen = loaded.spec, loaded.before, decision.state, loaded.seen
    now = after.clock
    yield from _commits(loaded, after)
    yield from recorder.specified(spec, loaded.job.spec.policy, now)
    yield from recorder.reached(after.attempt, reached(loaded, after), now)
    yield from recorder.observed(before, after, seen)
    yield from recorder.decided(loaded.state, decision, seen, now)
    yield recorder.billed(after, now)
    yield from recorder.waits(spec, after, seen, now)
    if ended := list(recorder.ended(before, after, now)):
        yield Decided(now, seen, after)
        yield from ended


def _known(loaded: Loaded, tier: str) -> KnownCapacity:
    found = loaded.capacity.get(tier)
    return NOTHING_KNOWN if found is None else history_in(found.status).known


def _commits(loaded: Loaded, after: JobState) -> Iterator[Committed]:
    """The commits since the last persisted decision, within their attempt: the clocks of the job's machines are not
    trusted. Of the outcome, only the newest commit is known."""
    known, newest = loaded.before.progress.commit, after.progress
    logged = [commit for commit in loaded.reading.commits if known < commit.seq <= newest.commit]
    found = [Committed.of(commit) for commit in logged]
    if newest.committed_at is not None and newest.commit > max([known, *(commit.seq for commit in logged)]):
        found.append(Committed(newest.committed_at, newest.attempt, after.tier, newest.step, newest.total))
    began = {one.number: one.created_at for one in (loaded.before.attempt, after.attempt) if one is not None}
    for commit in found:
        yield replace(commit, at=min(max(commit.at, began.get(commit.attempt, commit.at)), after.clock))
