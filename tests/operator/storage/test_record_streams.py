"""When records are written, and that nothing waits for them or fails with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.store import StoreRefused, folder_of
from spotladder.clusters.errors import ClusterUnreachable
from spotladder.core.contract import Milestone
from spotladder.core.lifecycle import decide
from spotladder.core.model import AttemptSeen, Decision, Exit, JobState, KnownCapacity, Observation, Progress
from spotladder.core.policies.ordered import Ordered
from spotladder.errors import SpotladderError, StoreUnavailable
from spotladder.operator.storage import record_streams as module
from spotladder.operator.storage.commit_logs import LogAddress
from spotladder.operator.storage.record_streams import BACKLOG_TIMEOUT, WRITE_INTERVAL, RecordStreams
from spotladder.operator.storage.retries import RETRY_INTERVALS
from spotladder.records import stored, stored_reading
from spotladder.records.model import Began, Committed, Ended, Moved, Noted, Reached, Record, encode
from spotladder.workloads.records import PodRecord
from spotladder.workloads.workload import AttemptObjects
from tests.checkpoints.memory_store import MemoryStore
from tests.clusters.stepped_clock import SteppedClock
from tests.core.builders import START, all_ready, attempt, spec, tier, worker
from tests.workloads.builders import pod_object, rayjob

SPEC = spec(tier("spot-a", 0), tier("on-demand", 3))

TIERS = [SimpleNamespace(capacity_tier="m6i-spot"), SimpleNamespace(capacity_tier="m6i")]
STATUS = b"""{"evictionsPerNodeHour": "0.3", "observedHours": "40", "availability": "0.5", "conditions": [{
"type": "Available", "status": "False", "reason": "NoNodes", "message": "full",
"lastTransitionTime": "2026-01-01T00:00:00Z"}]}"""


class Bucket:
    """A bucket that first raises the errors in `errors`, and a job whose decisions are recorded in it."""

    def __init__(self) -> None:
        self.clock = SteppedClock()
        self.store = MemoryStore()
        self.errors: list[Exception] = []
        self.writes = 0
        self.gate: asyncio.Event | None = None
        self.no_backlog = asyncio.Event()
        self.no_backlog.set()
        self.now = START
        self.seen = Observation(0)
        self.state = self.persisted = JobState()
        self.objects = AttemptObjects()
        self.beat: StoredHeartbeat | None = None

    async def record(self, address: LogAddress, records: Sequence[Record], after: int | None) -> int:
        self.writes += 1
        if self.gate:
            await self.gate.wait()
        if self.errors:
            raise self.errors.pop(0)
        return stored.append(self.folder, [encode(record) for record in records], after)

    async def address(self) -> LogAddress:
        return LogAddress("digits", "ns", "u", "s3://b/p")

    def streams(self) -> RecordStreams:
        return RecordStreams(cast("Any", self), clock=self.clock, no_backlog=self.no_backlog)

    def see(self, streams: RecordStreams, *attempts: AttemptSeen, persisted: bool = True, after: float = 1.0) -> None:
        """Decide until nothing changes, and record each decision."""
        self.now += after
        self.seen = Observation(self.seen.revision + 1, attempts)
        while True:
            decision = decide(SPEC, self.state, self.seen, self.now, Ordered())
            self.record_decision(streams, decision, persisted=persisted)
            if not decision.moves:
                return

    def record_decision(
        self, streams: RecordStreams, decision: Decision, *, persisted: bool = True, commits: Sequence[Commit] = ()
    ) -> None:
        """Record this decision in the current state, which it changes."""
        loaded = SimpleNamespace(
            record=SimpleNamespace(uid="u", name="digits", namespace="ns", created_at=START),
            job=SimpleNamespace(spec=SimpleNamespace(policy="ordered", tiers=TIERS)),
            capacity={"m6i-spot": SimpleNamespace(status=STATUS)},
            spec=SPEC,
            before=self.persisted,
            state=self.state,
            seen=self.seen,
            reading=SimpleNamespace(commits=tuple(commits), heartbeat=self.beat, progress=Progress(attempt=1)),
            found=SimpleNamespace(attempts={1: SimpleNamespace(objects=self.objects)}),
        )
        streams.decided(cast("Any", loaded), decision, self.address, persisted=persisted)
        self.state = decision.state
        self.persisted = decision.state if persisted else self.persisted

    @property
    def folder(self) -> Any:
        return stored.of_job(folder_of(self.store, "digits"), "u")

    @property
    def records(self) -> tuple[Record, ...]:
        return stored_reading.read(self.folder).records

    def kinds(self) -> list[type]:
        return [type(record) for record in self.records]


async def written() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_change_is_written_at_once_and_other_records_with_the_next_one_or_after_an_interval() -> None:
    bucket = Bucket()
    async with bucket.streams() as streams:
        bucket.see(streams)
        await written()
        began = bucket.records[0]
        assert isinstance(began, Began)
        assert began.known == (KnownCapacity(0.3, 40.0, "NoNodes: full", availability=0.5), KnownCapacity())
        assert Moved in bucket.kinds()
        assert bucket.writes == 1
        bucket.see(streams, attempt(1, worker("w0", ready=False)))
        await written()
        assert bucket.writes == 1
        await bucket.clock.advance(WRITE_INTERVAL)
        bucket.see(streams, attempt(1, worker("w0", ready=False)))
        await written()
        assert bucket.writes == 2
        bucket.see(streams, all_ready(1), persisted=False)
        await written()
        assert bucket.writes == 2, "only what is persisted is recorded"
    assert bucket.kinds().count(Began) == 1


async def test_a_write_lets_waiting_jobs_go_first_for_a_limited_time() -> None:
    bucket = Bucket()
    bucket.no_backlog.clear()
    async with bucket.streams() as streams:
        bucket.see(streams)
        await written()
        assert bucket.writes == 0
        await bucket.clock.advance(BACKLOG_TIMEOUT)
        await written()
        assert bucket.writes == 1
        bucket.see(streams, all_ready(1))
        bucket.no_backlog.set()
        await written()
        assert bucket.writes == 2


async def test_the_end_has_the_state_and_everything_before_it() -> None:
    bucket = Bucket()
    async with bucket.streams() as streams:
        bucket.see(streams)
        bucket.see(streams, all_ready(1))
        bucket.see(streams, all_ready(1, exit=Exit.SUCCEEDED))
        bucket.see(streams, after=30.0)
    kinds = bucket.kinds()
    assert kinds.index(Ended) > max(index for index, kind in enumerate(kinds) if kind is Moved)
    assert stored_reading.read(bucket.folder).state == bucket.state


@pytest.mark.parametrize("error", [StoreUnavailable, ClusterUnreachable], ids=["bucket", "API server, for its Secret"])
async def test_a_bucket_that_does_not_answer_delays_nothing_and_gets_the_records_later(error: type[Exception]) -> None:
    bucket = Bucket()
    bucket.errors = [error("away"), error("away")]
    async with bucket.streams() as streams:
        bucket.see(streams)
        bucket.see(streams, all_ready(1))
        for pause in RETRY_INTERVALS[:2]:
            await written()
            await bucket.clock.advance(pause)
        await written()
        assert bucket.kinds().count(Moved) == 2
        assert Noted not in bucket.kinds()


@pytest.mark.parametrize("error", [StoreRefused("read only"), SpotladderError("denied"), RuntimeError("a defect")])
async def test_records_that_are_refused_are_lost_and_the_next_write_says_so(error: Exception) -> None:
    bucket = Bucket()
    bucket.errors = [error]
    async with bucket.streams() as streams:
        bucket.see(streams)
        await written()
        bucket.see(streams, all_ready(1))
        await written()
    (noted,) = [record for record in bucket.records if isinstance(record, Noted)]
    assert "records are missing" in noted.text
    assert bucket.kinds().count(Moved) == 1


async def test_a_hanging_bucket_keeps_a_bounded_number_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PENDING", 5)
    monkeypatch.setattr(module, "CLOSE_TIMEOUT", 0.01)
    bucket = Bucket()
    bucket.gate = asyncio.Event()
    async with bucket.streams() as streams:
        bucket.see(streams)
        await written()
        for _ in range(20):
            bucket.see(streams, all_ready(1), after=30.0)
        (stream,) = streams._streams.values()
        assert len(stream.pending) <= 5
        bucket.gate.set()
        await written()
        assert bucket.writes == 2
        assert any(isinstance(record, Noted) and "missing" in record.text for record in bucket.records)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_defect_while_records_are_made_is_no_error_of_the_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("defect")

    monkeypatch.setattr(module, "_records", broken)
    bucket = Bucket()
    async with bucket.streams() as streams:
        bucket.see(streams)
    assert bucket.writes == 0 or bucket.kinds() == [Began]


async def test_commits_have_the_metrics_of_the_log_and_times_within_the_attempt() -> None:
    bucket = Bucket()
    async with bucket.streams() as streams:
        bucket.see(streams)
        logged = [
            Commit(seq, "n", START + at, "w", 1, "spot-a", step, 100, "path", (), {"loss": 1.0 / seq})
            for seq, at, step in ((2, -5.0, 10), (4, 1e6, 20))
        ]
        newest = Progress(30, 100, START + 1, 1, commit=6)
        bucket.record_decision(streams, Decision(replace(bucket.state, progress=newest)), commits=logged)
    commits = [record for record in bucket.records if isinstance(record, Committed)]
    assert [(one.step, one.metrics.get("loss")) for one in commits] == [(10, 0.5), (20, 0.25), (30, None)]
    assert all(START + 1 <= one.at <= bucket.now for one in commits)


async def test_the_milestones_of_a_start_are_recorded_once_with_the_times_of_its_objects_and_its_heartbeat() -> None:
    bucket = Bucket()
    async with bucket.streams() as streams:
        bucket.see(streams)
        created = bucket.now
        pods = [
            replace(PodRecord.of(pod_object(name)), scheduled_at=created + at) for name, at in (("a", 0.1), ("b", 0.2))
        ]
        running = [replace(pod.containers[0], running_since=created + 0.4) for pod in pods]
        started = [replace(pod, containers=(one,)) for pod, one in zip(pods, running, strict=True)]
        top = replace(rayjob(), created_at=created, program_at=created + 0.5)
        bucket.objects = AttemptObjects(top, pods=tuple(started))
        bucket.see(streams, all_ready(1))
        await written()
        writes = bucket.writes
        bucket.beat = StoredHeartbeat(0, 7, reached={Milestone.JOINED: -5.0})
        bucket.see(streams, all_ready(1))
        await written()
        assert bucket.writes == writes, "the milestones wait for the first step"
        bucket.beat = StoredHeartbeat(0, 7, reached={Milestone.JOINED: -5.0, Milestone.STEPPED: 1e12})
        for _ in range(2):
            bucket.see(streams, all_ready(1))
            await written()
        assert bucket.writes == writes + 1
    reached = {one.milestone: one.at - created for one in bucket.records if isinstance(one, Reached)}
    assert reached == pytest.approx(
        {
            Milestone.LAUNCHED: 0.0,
            Milestone.SCHEDULED: 0.2,
            Milestone.CONTAINERS: 0.4,
            Milestone.PROGRAM: 0.5,
            Milestone.JOINED: 0.0,
            Milestone.STEPPED: 3.0,
        }
    ), "clamped between the launch and the observation"
    assert bucket.kinds().count(Reached) == 6
