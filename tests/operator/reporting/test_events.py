"""The text of Events, the failures that are parsed from them, and when they are written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

import pytest

from spotladder.api.stored import JobRecord
from spotladder.clusters.client import Client
from spotladder.core.model import Attempt, Decision, JobState, Loss, Move, Progress, Stage
from spotladder.core.reasons import Cause, Reason
from spotladder.operator.reporting.events import BURST, LONGEST_DELAY, RATE, Events, Note, notes_of, resize_notes
from tests.clusters.stepped_clock import SteppedClock

LOSS = Loss("digits-a001-worker-x7k2 (node gone)", Cause.NODE_LOST, 12, "spot-a")


@pytest.mark.parametrize(("noticed", "verb"), [(False, "lost"), (True, "will lose")])
def test_a_failure_is_parsed_from_its_event(noticed: bool, verb: str) -> None:
    loss = replace(LOSS, noticed=noticed)
    (note,) = notes_of(Decision(JobState(), losses=(loss,)))
    assert note.message == f"attempt 12 on spot-a {verb} digits-a001-worker-x7k2 (node gone)"
    assert (note.reason, note.action) == ("NodeLost", "Count")


@pytest.mark.parametrize(
    ("target", "deleting", "reason", "message"),
    [
        (Stage.SUSPENDED, False, "SuspendRequested", "attempt 3 on spot-a"),
        (Stage.SUSPENDED, True, "DeleteRequested", "all objects of the job are gone; it is deleted"),
        (
            Stage.DRAINING,
            True,
            "DeleteRequested",
            "attempt 3 on spot-a: the job is deleted; the attempt commits and stops",
        ),
    ],
)
def test_events_of_a_deleted_job_have_reason_delete_requested(
    target: Stage, deleting: bool, reason: str, message: str
) -> None:
    move = Move(Stage.RUNNING, target, Reason.SUSPEND_REQUESTED, 3, "spot-a")
    (note,) = notes_of(Decision(JobState(), moves=(move,)), deleting=deleting)
    assert (note.reason, note.message, note.kind) == (reason, message, "Normal")


ELASTIC = JobState(
    stage=Stage.RUNNING, attempt=Attempt(2, "spot-a", 0.0, workers=4, min_workers=2), tier="spot-a", last_number=2
)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (0, 4, "attempt 2 on spot-a trains with 4 workers"),
        (4, 3, "attempt 2 on spot-a continues with 3 of 4 workers"),
        (3, 4, "attempt 2 on spot-a grew to 4 workers"),
        (3, 3, None),
    ],
)
def test_an_event_says_when_an_elastic_job_changes_its_size(before: int, after: int, message: str | None) -> None:
    states = [replace(ELASTIC, progress=Progress(attempt=2, workers=size)) for size in (before, after)]
    notes = [(note.reason, note.message, note.kind) for note in resize_notes(*states)]
    assert notes == ([("Resized", message, "Normal" if after == 4 else "Warning")] if message else [])


JOB = JobRecord(name="digits", namespace="team", uid="u-1")


class Written:
    """A client that records the Events, and the tests' backlog of jobs."""

    def __init__(self, clock: SteppedClock) -> None:
        self.notes: list[tuple[str, str]] = []
        self.no_backlog = asyncio.Event()
        self.events = Events(cast(Client, self), clock=clock, instance="test", no_backlog=self.no_backlog)

    async def create(self, _kind: object, body: dict[str, Any]) -> None:
        self.notes.append((body["note"], body["eventTime"]))


@asynccontextmanager
async def running(clock: SteppedClock) -> AsyncIterator[Written]:
    written = Written(clock)
    task = asyncio.create_task(written.events.run())
    try:
        yield written
    finally:
        task.cancel()


async def test_events_are_written_after_the_jobs_that_wait_for_a_reconcile() -> None:
    clock = SteppedClock()
    async with running(clock) as written:
        written.events.emit(JOB, Note("FellBack", "Starting", "attempt 2"))
        await clock.advance(LONGEST_DELAY / 2)
        assert not written.notes
        written.no_backlog.set()
        await clock.advance(0.0)
        assert [note for note, _at in written.notes] == ["attempt 2"]


async def test_a_backlog_that_never_ends_delays_each_event_by_the_longest_delay() -> None:
    clock = SteppedClock()
    async with running(clock) as written:
        for number in range(20):
            written.events.emit(JOB, Note("FellBack", "Starting", f"attempt {number}"))
        await clock.advance(LONGEST_DELAY + 1.0)
        assert [note for note, _at in written.notes] == [f"attempt {number}" for number in range(20)]
        assert {at for _note, at in written.notes} == {"2027-01-15T08:00:00.000000Z"}, "the time of the emission"


async def test_the_text_of_an_event_has_no_more_bytes_than_the_api_server_accepts() -> None:
    clock = SteppedClock()
    async with running(clock) as written:
        written.no_backlog.set()
        written.events.emit(JOB, Note("LaunchRefused", "Check", "verweigert für: " + "é" * 1024))
        await clock.advance(0.0)
        ((note, _at),) = written.notes
        assert note.startswith("verweigert für: éé")
        assert 1020 < len(note.encode()) <= 1024


async def test_old_events_are_kept_back_when_many_jobs_begin_to_wait() -> None:
    """The start of many jobs leaves a backlog of Events, which must not compete with their fallbacks."""
    clock = SteppedClock()
    async with running(clock) as written:
        written.no_backlog.set()
        emitted = int(2 * LONGEST_DELAY * RATE) + BURST
        for number in range(emitted):
            written.events.emit(JOB, Note("Started", "Starting", f"attempt {number}"))
        await clock.advance(1.5 * LONGEST_DELAY)
        before = len(written.notes)
        for jobs_wait in (0.2, 0.9):
            written.no_backlog.clear()
            await clock.advance(jobs_wait * LONGEST_DELAY)
            assert len(written.notes) <= before + 1
            written.no_backlog.set()
            await clock.advance(1.0)
            assert len(written.notes) > before + 1
            before = len(written.notes)
