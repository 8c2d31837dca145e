"""Bucket outages that a program reports in its output: when the output is read, how often, and how it is evaluated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spotladder.checkpoints.outputs import Output
from spotladder.core.model import Attempt, AttemptSeen, Exit, JobState, Observation, Progress, Stage
from spotladder.operator.storage.outages import (
    AT_ONCE,
    LINE_TTL,
    LONGEST_POLL_INTERVAL,
    OUTAGE_POLL_INTERVAL,
    QUIET_TIME,
    READS_PER_SECOND,
    Outages,
)
from spotladder.output.outage import Outage, away_line, back_line
from tests.clusters.stepped_clock import SteppedClock

KEY = ("ns", "digits")
BEGAN = 1_800_000_000.0
AWAY = Outage(BEGAN + 30, "connection refused")


class RunningJob:
    """A running job; `printed` is the output of its program."""

    def __init__(self, interval: str = "20steps") -> None:
        self.clock = SteppedClock(BEGAN)
        self.interval = interval
        self.printed = ""
        self.reads = 0
        self.woken: list[tuple[str, str]] = []
        self.problem = ""

    async def read(self, _attempt: int, _found: object) -> Mapping[Output, str]:
        self.reads += 1
        return {Output(1, 0, "driver"): self.printed} if self.printed else {}

    def loaded(
        self,
        *,
        stage: Stage = Stage.RUNNING,
        attempt: int = 1,
        ended: Exit | None = None,
        committed: float | None = None,
        key: tuple[str, str] = KEY,
    ) -> Any:
        located = SimpleNamespace(cluster=SimpleNamespace(problem=self.problem))
        return SimpleNamespace(
            record=SimpleNamespace(key=key),
            job=SimpleNamespace(spec=SimpleNamespace(checkpoints=SimpleNamespace(interval=self.interval))),
            state=JobState(stage=stage, attempt=Attempt(attempt, "spot-a", BEGAN), progress_at=committed),
            seen=Observation(1, (AttemptSeen(attempt, exit=ended),)),
            found=SimpleNamespace(attempts={attempt: located}),
        )

    @asynccontextmanager
    async def outages(self) -> AsyncIterator[Outages]:
        made = Outages(clock=self.clock, changed=self.woken.append, read=cast("Any", self.read))
        async with made:
            yield made

    async def after(self, seconds: float) -> None:
        await self.clock.advance(seconds)
        for _ in range(20):
            await asyncio.sleep(0)

    def say(self, outage: Outage = AWAY) -> None:
        self.printed += away_line(outage, self.clock.now(), "training goes on") + "\n"


@pytest.mark.parametrize(("interval", "quiet"), [("20steps", QUIET_TIME), ("5m", 300 + QUIET_TIME)])
async def test_the_output_of_a_program_that_commits_in_time_is_not_read(interval: str, quiet: float) -> None:
    world = RunningJob(interval)
    world.printed = "step 1\n"
    async with world.outages() as outages:
        for _ in range(5):
            outages.watch(world.loaded(committed=world.clock.now()))
            await world.after(quiet - 1)
        assert world.reads == 0
        await world.after(2)
        assert world.reads == 1


async def test_an_outage_reported_by_the_program_is_kept_until_the_program_reports_its_end() -> None:
    world = RunningJob()
    async with world.outages() as outages:
        outages.watch(world.loaded())
        assert outages.of(KEY, 1, Progress()) is None
        world.say()
        await world.after(QUIET_TIME + 1)
        assert world.woken == [KEY]
        found = outages.of(KEY, 1, Progress(5, committed_at=AWAY.since - 5))
        assert found == Outage(BEGAN + QUIET_TIME, "connection refused")
        assert outages.of(KEY, 1, Progress(6, committed_at=AWAY.since + 1)) is None, "a later commit ends it"
        assert outages.of(KEY, 2, Progress()) is None
        for _ in range(10):
            world.say()
            await world.after(OUTAGE_POLL_INTERVAL)
        assert outages.of(KEY, 1, Progress()) == found  # the same outage
        assert world.woken == [KEY]
        world.printed += back_line(600) + "\n"
        await world.after(OUTAGE_POLL_INTERVAL)
        assert outages.of(KEY, 1, Progress()) is None
        assert world.woken == [KEY, KEY]


async def test_an_outage_line_that_is_not_repeated_expires() -> None:
    world = RunningJob()
    async with world.outages() as outages:
        outages.watch(world.loaded())
        world.say()
        await world.after(QUIET_TIME + 1)
        for _ in range(int(LINE_TTL / OUTAGE_POLL_INTERVAL)):
            assert outages.of(KEY, 1, Progress()) is not None
            await world.after(OUTAGE_POLL_INTERVAL)
        assert outages.of(KEY, 1, Progress()) is None


async def test_the_output_of_a_job_without_commits_is_read_rarely() -> None:
    world = RunningJob()
    world.printed = "step 1\n"
    async with world.outages() as outages:
        outages.watch(world.loaded())
        for _ in range(720):
            await world.after(10)
        assert 7200 / LONGEST_POLL_INTERVAL <= world.reads <= 7200 / LONGEST_POLL_INTERVAL + 6


async def test_thousands_of_jobs_without_commits_share_a_rate_of_reads() -> None:
    world = RunningJob()
    async with world.outages() as outages:
        for number in range(2000):
            outages.watch(world.loaded(key=("ns", f"job-{number}")))
        await world.after(QUIET_TIME + 1)
        assert AT_ONCE <= world.reads <= AT_ONCE + 1
        before = world.reads
        for _ in range(10):
            await world.after(10)
        assert world.reads - before == pytest.approx(100 * READS_PER_SECOND, abs=1)


async def test_a_commit_ends_the_wait_of_a_job_for_its_read() -> None:
    world = RunningJob()
    async with world.outages() as outages:
        for number in range(100):
            outages.watch(world.loaded(key=("ns", f"job-{number}")))
        await world.after(QUIET_TIME)
        for number in range(100):
            outages.watch(world.loaded(key=("ns", f"job-{number}"), committed=world.clock.now()))
        before = world.reads
        await world.after(QUIET_TIME - 1)
        assert world.reads == before


@pytest.mark.parametrize(
    "more",
    [{"stage": Stage.ENDING}, {"stage": Stage.SUCCEEDED}, {"ended": Exit.FAILED}, {"attempt": 2}],
    ids=["ending", "over", "the program has ended", "the next attempt"],
)
async def test_a_reported_outage_ends_with_its_attempt(more: dict[str, Any]) -> None:
    world = RunningJob()
    async with world.outages() as outages:
        outages.watch(world.loaded())
        world.say()
        await world.after(QUIET_TIME + 1)
        outages.watch(world.loaded(**more))
        assert outages.of(KEY, 1, Progress()) is None


async def test_output_that_grows_is_a_sign_of_life() -> None:
    world = RunningJob()
    async with world.outages() as outages:
        outages.watch(world.loaded())
        await world.after(QUIET_TIME + 1)
        assert outages.quiet_for(KEY, 1) is None  # It may print into a file.
        for step in range(20):
            world.printed += f"epoch {step}\n"
            await world.after(LONGEST_POLL_INTERVAL)
            quiet = outages.quiet_for(KEY, 1)
            assert quiet is not None
            assert quiet < LONGEST_POLL_INTERVAL
        assert outages.quiet_for(KEY, 2) is None


async def test_output_that_does_not_grow_requeues_the_job_with_its_age_at_each_read() -> None:
    world = RunningJob()
    world.printed = "epoch 1\n"
    async with world.outages() as outages:
        outages.watch(world.loaded())
        await world.after(QUIET_TIME + 1)
        for _ in range(20):
            await world.after(LONGEST_POLL_INTERVAL)
        assert outages.quiet_for(KEY, 1) == pytest.approx(20 * LONGEST_POLL_INTERVAL, abs=2 * LONGEST_POLL_INTERVAL)
        assert len(world.woken) == world.reads - 1
        quiet = outages.quiet_for(KEY, 1)
        world.printed = ""  # It cannot be read any more, which shows nothing.
        for _ in range(20):
            await world.after(LONGEST_POLL_INTERVAL)
        assert outages.quiet_for(KEY, 1) == quiet
