from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from spotladder.checkpoints.entries import Commit, Owner
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.store import StoreRefused
from spotladder.checkpoints.store_check import StoreUnsafe
from spotladder.core.attempt_program import LAST_COMMIT_LIMIT
from spotladder.core.model import Progress
from spotladder.errors import LogCorrupt, StoreUnavailable
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.reading import Reading
from spotladder.operator.storage import commit_logs as operator_logs
from spotladder.operator.storage.allowed_addresses import Grant
from spotladder.operator.storage.commit_logs import PER_BUCKET, EndOfLog, LogAddress, Logs
from spotladder.records.model import Record
from tests.clusters.stepped_clock import SteppedClock


@dataclass
class ScriptedLog:
    """A fake log with a configured answer; a closed `gate` delays it."""

    answer: Progress | BaseException = field(default_factory=Progress)
    gate: threading.Event | None = None
    reads: int = 0
    ends: int = 0
    refusal: Exception | None = None
    held: int = 0
    beat: StoredHeartbeat | None = None

    def progress(self) -> Progress:
        self.reads += 1
        if self.gate:
            self.gate.wait(60)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def heartbeat(self) -> StoredHeartbeat | None:
        return self.beat

    def is_held(self, attempt: int) -> bool:
        return attempt == self.held

    def end(self, outcome: str, attempt: int, message: str, keep: int) -> EndOfLog:
        self.ends += 1
        if self.gate:
            self.gate.wait(60)
        if self.refusal:
            raise self.refusal
        self.answer = Progress(step=attempt)
        return EndOfLog(f"kept {keep}", self.answer)

    def keep(self, texts: Mapping[Output, str]) -> None:
        raise AssertionError("nothing was printed here")

    def commits(self) -> tuple[Commit, ...]:
        return ()

    def record(self, records: Sequence[Record], after: int | None) -> int:
        raise AssertionError("nothing is recorded here")


def address(job: str, bucket: str = "s3://one") -> LogAddress:
    return LogAddress(job, "ns", "uid", f"{bucket}/prefix")


async def until(what: object) -> None:
    for _ in range(300_000):  # minutes, however busy the machine is
        if what():  # type: ignore[operator]
            return
        await asyncio.sleep(0.002)
    raise AssertionError("the condition was not met")


async def test_a_new_commit_requeues_the_job_and_an_unchanged_log_does_not() -> None:
    fake, woken, clock = ScriptedLog(Progress(step=1)), list[JobKey](), SteppedClock()
    async with Logs(clock=clock, changed=woken.append, open_log=lambda _: fake, jitter=lambda: 0.5) as logs:
        assert logs.follow(("ns", "a"), address("a"), 10) == Reading()
        await until(lambda: woken)
        assert logs.follow(("ns", "a"), address("a"), 10) == Reading(True, Progress(step=1))
        for reads in (2, 3):
            await clock.advance(10.1)
            await until(lambda reads=reads: fake.reads == reads)
        assert woken == [("ns", "a")]
        fake.answer = Progress(step=2)
        await clock.advance(10.1)
        await until(lambda: len(woken) == 2)
        logs.read_now(("ns", "a"))
        await until(lambda: fake.reads == 5)


async def test_a_hang_requeues_the_job_and_a_step_does_not() -> None:
    fake, woken, clock = (
        ScriptedLog(Progress(attempt=1), beat=StoredHeartbeat(0, 7, 100)),
        list[JobKey](),
        SteppedClock(),
    )
    async with Logs(clock=clock, changed=woken.append, open_log=lambda _: fake, jitter=lambda: 0.5) as logs:
        key = ("ns", "a")
        logs.follow(key, address("a"), 10)
        await until(lambda: len(woken) == 1)
        fake.beat = StoredHeartbeat(0, 9, 100)
        await clock.advance(10.1)
        await until(lambda: (beat := logs.follow(key, address("a"), 10).heartbeat) is not None and beat.step == 9)
        assert len(woken) == 1
        fake.beat = StoredHeartbeat(0, 9, 100, "no step for 60 s")
        await clock.advance(10.1)
        await until(lambda: len(woken) == 2)
        assert logs.follow(key, address("a"), 10).hung == "no step for 60 s"


BELONGS = (
    "z: these checkpoints belong to {}, not to ns/a: use another checkpoint address or job name; nothing was changed"
)
ELSEWHERE = "a job of another namespace"


class Panic(BaseException):
    """Like the exception that a native library raises for an internal error."""


async def test_an_unreadable_log_reports_the_cause_and_keeps_the_known_progress() -> None:
    fake, woken, clock = ScriptedLog(Progress(step=7)), list[JobKey](), SteppedClock()
    async with Logs(clock=clock, changed=woken.append, open_log=lambda _: fake) as logs:
        key = ("ns", "a")
        logs.follow(key, address("a"), 1)
        await until(lambda: len(woken) == 1)
        errors: list[tuple[BaseException, str, str]] = [
            (StoreUnavailable("x"), "", "x"),
            (LogCorrupt("y"), "CheckpointsCorrupt", "y"),
            (StoreUnsafe("u"), "StoreUnsafe", "u"),
            (ForeignLog("z", Owner("b", "ns"), Owner("a", "ns")), "CheckpointsInUse", BELONGS.format("ns/b")),
            (ForeignLog("z", Owner("b", "other"), Owner("a", "ns")), "CheckpointsInUse", BELONGS.format(ELSEWHERE)),
            (Panic("no header"), "", "s3://one/prefix: RuntimeError: Panic: no header"),
            (KeyError("x"), "", "s3://one/prefix: KeyError: 'x'"),
        ]
        for number, (error, reason, says) in enumerate(errors, 2):
            fake.answer = error
            logs.read_now(key)
            await until(lambda number=number: len(woken) == number)
            reading = logs.follow(key, address("a"), 1)
            found = (reading.refused.reason, reading.refused.message) if reading.refused else ("", reading.unreadable)
            assert found == (reason, says)
            assert reading.progress.step == 7
        fake.answer = Progress(step=8)
        logs.read_now(key)
        await until(lambda: len(woken) == len(errors) + 2)
        assert logs.follow(key, address("a"), 1) == Reading(True, Progress(step=8))


async def test_the_start_of_a_bucket_outage_is_kept_and_a_refusal_is_no_outage() -> None:
    fake, woken, clock = ScriptedLog(Progress(step=7)), list[JobKey](), SteppedClock(1000.0)
    key = ("ns", "a")
    async with Logs(clock=clock, changed=woken.append, open_log=lambda _: fake) as logs:
        fake.answer = StoreUnavailable("503")
        logs.follow(key, address("a"), 10)
        await until(lambda: woken)
        assert logs.follow(key, address("a"), 10).away_since == clock.now()
        began = clock.now()
        fake.answer = StoreUnavailable("connection refused")
        await clock.advance(60)
        await until(lambda: len(woken) == 2)
        reading = logs.follow(key, address("a"), 10)
        assert (reading.away_since, reading.unreadable) == (began, "connection refused")
        fake.answer = StoreRefused("no rights")
        logs.read_now(key)
        await until(lambda: len(woken) == 3)
        reading = logs.follow(key, address("a"), 10)
        assert (reading.away_since, reading.unreadable) == (None, "no rights")


async def test_a_bucket_that_does_not_answer_delays_only_its_own_jobs() -> None:
    gate, clock = threading.Event(), SteppedClock()
    hanging = [ScriptedLog(gate=gate) for _ in range(3 * PER_BUCKET)]
    well = ScriptedLog(Progress(step=3))
    woken: list[JobKey] = []

    def find(where: LogAddress) -> ScriptedLog:
        return well if where.job == "well" else hanging[int(where.job)]

    async with Logs(clock=clock, changed=woken.append, open_log=find) as logs:
        for index in range(len(hanging)):
            logs.follow(("ns", str(index)), address(str(index), "s3://hangs"), 10)
        logs.follow(("ns", "well"), address("well"), 10)
        await until(lambda: ("ns", "well") in woken)
        assert sum(fake.reads for fake in hanging) == PER_BUCKET
        gate.set()
        await until(lambda: all(fake.reads for fake in hanging))


async def test_the_buckets_of_jobs_that_are_gone_take_no_memory() -> None:
    async with Logs(clock=SteppedClock(), changed=lambda _: None, open_log=lambda _: ScriptedLog()) as logs:
        for number in range(3):
            job = ("ns", f"job-{number}")
            logs.follow(job, address(job[1], f"s3://bucket-{number}"), 30.0)
            await until(lambda job=job: logs._followed[job].reading.known)
            task = logs._followed[job].task
            assert task is not None
            logs.unfollow(job)
            await asyncio.wait({task})
            del task
        gc.collect()
        assert not len(logs._buckets)


async def test_a_read_that_waits_for_its_turn_is_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bucket answers to a few reads at a time, long before each of them has timed out."""
    turns = 7
    names, gates = [str(number) for number in range(turns * PER_BUCKET)], [threading.Event() for _ in range(turns)]
    begun, woken = list[LogAddress](), list[JobKey]()

    def find(where: LogAddress) -> ScriptedLog:
        begun.append(where)
        return ScriptedLog(Progress(step=1), gates[int(where.job) // PER_BUCKET])

    loop, ahead = asyncio.get_running_loop(), 0.0
    ticks = loop.time
    monkeypatch.setattr(operator_logs, "READ_TIMEOUT", 100_000.0)
    monkeypatch.setattr(loop, "time", lambda: ticks() + ahead)
    async with Logs(clock=SteppedClock(), changed=woken.append, open_log=find) as logs:
        for name in names:
            logs.follow(("ns", name), address(name), 1000)
        for turn, gate in enumerate(gates, 1):
            await until(lambda turn=turn: len(begun) == turn * PER_BUCKET)
            ahead += 0.75 * operator_logs.READ_TIMEOUT
            gate.set()
            await until(lambda turn=turn: len(woken) >= turn * PER_BUCKET)
        assert sorted(woken) == sorted(("ns", name) for name in names), "nothing but the answers has been reported"
        readings = {name: logs.follow(("ns", name), address(name), 1000) for name in names}
    assert readings == {name: Reading(True, Progress(step=1)) for name in names}


async def test_reads_that_wait_behind_a_hanging_bucket_are_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_logs, "READ_TIMEOUT", 0.02)
    gate, woken = threading.Event(), list[JobKey]()
    hanging = ScriptedLog(gate=gate)
    async with Logs(clock=SteppedClock(), changed=woken.append, open_log=lambda _: hanging) as logs:
        names = [str(number) for number in range(2 * PER_BUCKET)]
        for name in names:
            logs.follow(("ns", name), address(name), 1000)
        await until(lambda: len(woken) == len(names))
        assert all(logs.follow(("ns", name), address(name), 1000).away_since is not None for name in names)
        gate.set()


async def test_reads_continue_after_the_process_could_start_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit of a container's processes ends nothing: a call without a thread gives its turn back."""
    refused, fake, clock = list[int](), ScriptedLog(Progress(step=1)), SteppedClock()
    start = threading.Thread.start

    def limited(thread: threading.Thread) -> None:
        if thread.name == "spotladder-work" and len(refused) < PER_BUCKET:
            refused.append(1)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    async with Logs(clock=clock, changed=lambda _: None, open_log=lambda _: fake) as logs:
        for reads in range(1, PER_BUCKET + 1):
            logs.follow(("ns", "a"), address("a"), 10)
            await until(lambda reads=reads: len(refused) == reads and clock.sleepers)
            await clock.advance(13)
        await until(lambda: fake.reads)


async def test_an_exit_waits_for_a_read_of_the_log_that_began_after_it() -> None:
    gate, clock = threading.Event(), SteppedClock()
    fake, woken = ScriptedLog(Progress(step=1), gate), list[JobKey]()
    async with Logs(clock=clock, changed=woken.append, open_log=lambda _: fake, jitter=lambda: 0.5) as logs:
        key = ("ns", "a")
        assert logs.time_until_read(key, "exit") == 0  # the log is not followed: there is no read to wait for
        logs.follow(key, address("a"), 1000)
        await until(lambda: fake.reads == 1)
        assert logs.time_until_read(key, "exit") == LAST_COMMIT_LIMIT  # the running read began before the exit
        gate.set()
        await until(lambda: fake.reads == 2)
        await until(lambda: logs.time_until_read(key, "exit") == 0)
        assert len(woken) == 2  # a waiting job is requeued even without a new commit
        gate.clear()
        assert logs.time_until_read(key, "another exit") == LAST_COMMIT_LIMIT
        await clock.advance(LAST_COMMIT_LIMIT - 1)
        assert logs.time_until_read(key, "another exit") == 1
        await clock.advance(1)
        assert logs.time_until_read(key, "another exit") == 0  # a bucket outage delays the job for a limited time
        gate.set()


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_that_coincides_with_the_answer_is_not_lost(
    turns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shutdown would wait endlessly for a worker that missed its cancellation."""
    answered = asyncio.Event()

    async def answer(_work: object) -> None:
        await answered.wait()

    monkeypatch.setattr("spotladder.operator.storage.commit_logs.threaded", answer)
    async with Logs(clock=SteppedClock(), changed=lambda _: None, open_log=lambda _: ScriptedLog()) as logs:
        ending = asyncio.create_task(logs.end(address("a"), "Succeeded", 1, "", keep=3))
        await asyncio.sleep(0.01)
        answered.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        if ending.cancel():
            await asyncio.wait({ending})
            assert ending.cancelled()


async def test_a_bucket_that_does_not_answer_does_not_block_the_reconciler_at_the_end_of_a_job(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operator_logs, "PROMPT", 0.01)
    fake, woken = ScriptedLog(gate=threading.Event()), list[JobKey]()
    async with Logs(clock=SteppedClock(), changed=woken.append, open_log=lambda _: fake) as logs:
        for _ in range(2):  # the second call finds the first one still running
            with pytest.raises(TimeoutError, match="the bucket has not answered yet"):
                await logs.end(address("a"), "Succeeded", 7, "", keep=3)
        assert woken == []
        assert fake.gate
        monkeypatch.setattr(operator_logs, "PROMPT", 600.0)
        fake.gate.set()
        await until(lambda: woken == [("ns", "a")])
        assert await logs.end(address("a"), "Succeeded", 7, "", keep=3) == EndOfLog("kept 3", Progress(7))
        assert fake.ends == 1


async def test_the_end_of_a_deleted_job_is_not_the_end_of_a_new_job_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operator_logs, "PROMPT", 0.01)
    fake, woken = ScriptedLog(gate=threading.Event()), list[JobKey]()
    async with Logs(clock=SteppedClock(), changed=woken.append, open_log=lambda _: fake) as logs:
        with pytest.raises(TimeoutError):
            await logs.end(address("a"), "Failed", 7, "", keep=3)
        assert fake.gate
        monkeypatch.setattr(operator_logs, "PROMPT", 600.0)
        fake.gate.set()
        await until(lambda: woken == [("ns", "a")])
        new = replace(address("a"), uid="new")
        assert await logs.end(new, "Succeeded", 1, "", keep=3) == EndOfLog("kept 3", Progress(1))
        assert fake.ends == 2


async def test_the_log_of_a_doubted_job_is_read_often_and_shows_that_its_program_has_stopped() -> None:
    beat = StoredHeartbeat(0, 12, 100, beat=3, every=5.0)
    fake, woken, clock = ScriptedLog(Progress(step=1), beat=beat), list[JobKey](), SteppedClock()
    key = ("ns", "a")
    async with Logs(clock=clock, changed=woken.append, open_log=lambda _: fake, jitter=lambda: 0.5) as logs:

        async def read(seconds: float) -> None:
            before = fake.reads
            await clock.advance(seconds)
            await until(lambda: fake.reads > before)
            await until(lambda: clock.sleepers)

        logs.follow(key, address("a"), 60)
        await until(lambda: woken)
        assert not logs.has_stopped(key)
        logs.doubt({key})
        await until(lambda: fake.reads == 2)
        await until(lambda: clock.sleepers)
        for _ in range(7):
            await read(2.0)
        assert (logs.has_stopped(key, ahead=2.5), logs.has_stopped(key)) == (True, False)
        await read(2.0)
        assert logs.has_stopped(key)
        await until(lambda: len(woken) == 2)
        assert logs.follow(key, address("a"), 60).stopped

        fake.beat = StoredHeartbeat(0, 13, 100, beat=4, every=5.0)
        await read(2.0)
        assert not logs.follow(key, address("a"), 60).stopped
        logs.doubt(set())
        await read(2.0)
        reads = fake.reads
        await clock.advance(50)
        assert fake.reads == reads
        assert not logs.has_stopped(("ns", "another"))


@pytest.mark.parametrize(
    "answer",
    [
        StoreRefused("s3://one/prefix: 404 Not Found"),
        StoreUnavailable("s3://one/prefix: connection refused"),
        OSError("the server sent no HTTP"),
        None,
    ],
    ids=["open", "closed", "no store", "slow"],
)
async def test_a_condition_does_not_tell_which_chosen_endpoints_answer(
    answer: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant whose rule lists `https://*.example.com` may name any host there."""
    monkeypatch.setattr(operator_logs, "READ_TIMEOUT", 0.05)
    gate = threading.Event()
    fake = ScriptedLog() if answer is None else ScriptedLog(answer)
    fake.gate = gate if answer is None else None
    chosen = LogAddress("a", "ns", "uid", "s3://one/prefix", Grant(chosen=True))
    clock = SteppedClock()
    async with Logs(clock=clock, changed=lambda _key: None, open_log=lambda _: fake) as logs:
        key = ("ns", "a")
        await until(lambda: logs.follow(key, chosen, 10).unreadable)
        reading = logs.follow(key, chosen, 10)
        assert reading.unreadable == "s3://one/prefix: the endpoint of the Secret cannot be reached or is not allowed"
        assert reading.away_since == clock.now()
        gate.set()
