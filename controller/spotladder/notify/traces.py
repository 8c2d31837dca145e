"""Sends a trace of each restart once its first step was observed.

The records of a job are in its bucket, so they are read only for jobs that have fallen back, and less and less often.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from spotladder.backoff import delay
from spotladder.core.model import Seconds
from spotladder.display.report.facts import RunFacts
from spotladder.notify.follow import is_new
from spotladder.notify.notices import Kind
from spotladder.places.place import FollowedPlace, Object
from spotladder.records.restarts import Restart

LOOK_INTERVAL: Seconds = 5.0
"""Seconds between two searches for jobs that have fallen back."""

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
"""Seconds between two reads of the records of a job whose first step is awaited, at first and at last."""

AT_ONCE = 4
"""Number of jobs whose records are read at a time."""


class Sender(Protocol):
    """Takes the restarts of jobs of a place."""

    def send(self, place: str, facts: RunFacts, restart: Restart) -> None: ...


@dataclass(slots=True)
class _Awaited:
    """A job: the newest attempt whose restart needs no trace any more, and when its records are read again."""

    sent: int
    reads: int = 0
    due: Seconds = 0.0


class Tracer:
    """Sends the restarts that begin from now on in these places. `problem` is called with a sentence about each job
    whose records cannot be read."""

    def __init__(
        self,
        places: Sequence[FollowedPlace],
        sender: Sender,
        problem: Callable[[str], None],
        ticks: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        self._places, self._sender, self._problem, self._ticks = places, sender, problem, ticks
        self._jobs: dict[tuple[str, ...], _Awaited] = {}
        self._began = time.time()
        self._reading = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Search until cancelled. The caller follows the places concurrently."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_INTERVAL)

    async def look(self) -> None:
        """Read the records of jobs that have fallen back and train again, or have ended, and send their restarts."""
        jobs: dict[tuple[str, ...], _Awaited] = {}
        due = []
        for place in self._places:
            for job in place.jobs():
                metadata, status = job["metadata"], job.get("status") or {}
                key = (place.name, metadata["namespace"], metadata["name"], metadata.get("uid") or "")
                attempt = int(status.get("attempt") or 0)
                awaited = jobs[key] = self._jobs.get(key) or _Awaited(1 if is_new(job, self._began) else attempt)
                if attempt <= awaited.sent or self._ticks() < awaited.due:
                    continue
                if attempt > awaited.sent + 1 or status.get("phase") in ("Running", Kind.SUCCEEDED, Kind.FAILED):
                    due.append(self._read(place, job, attempt, awaited))
        self._jobs = jobs
        await asyncio.gather(*due)

    async def _read(self, place: FollowedPlace, job: Object, attempt: int, awaited: _Awaited) -> None:
        awaited.reads += 1
        awaited.due = self._ticks() + delay(FIRST_PAUSE, LONGEST_PAUSE, awaited.reads, 1.0)
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        try:
            async with self._reading:
                facts = await place.facts(namespace, name)
        except Exception as error:  # noqa: BLE001 – the records are foreign: their defects must not end the messages
            if awaited.reads == 1:
                self._problem(f"no trace of {namespace}/{name} yet: {error or type(error).__name__}")
            return
        over = job["status"].get("phase") in (Kind.SUCCEEDED, Kind.FAILED)
        if facts is None:  # It has no records: its checkpoints are in no bucket.
            awaited.sent = attempt
            return
        for restart in facts.restarts:
            if restart.attempt > awaited.sent and (restart.complete or over or restart.attempt < attempt):
                awaited.sent, awaited.reads = restart.attempt, 0
                if restart.parts:
                    self._sender.send(place.title, facts, restart)
        if over:
            awaited.sent = attempt
