"""Kubernetes Events: what `kubectl describe` shows below a TieredJob. They carry the reasons of the core.

Each is written at most once: an Event that cannot be written, or is not when the controller ends, is lost. The status,
which is written first, has all important information.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

from spotladder.api.record import API_VERSION
from spotladder.api.stored import JobRecord
from spotladder.clusters.client import Client
from spotladder.clusters.clock import Clock, wait_at_most
from spotladder.clusters.throttle import Throttle
from spotladder.core.facts.elastic import resized, size_text
from spotladder.core.model import Decision, Instant, JobState, Move, Seconds, Stage
from spotladder.core.reasons import Reason
from spotladder.errors import SpotladderError
from spotladder.operator.condition_types import DELETE_REQUESTED, Diagnosis, one_line
from spotladder.resources import TIEREDJOBS, APIResource
from spotladder.timestamps import utc_microseconds

WRITTEN = APIResource("events.k8s.io", "v1", "events", "Event")

_NORMAL = frozenset(
    {
        Reason.STARTED, Reason.ALL_READY, Reason.MIGRATED_BACK, Reason.DRAINED, Reason.GONE, Reason.SUSPEND_REQUESTED,
        Reason.RESUME_REQUESTED, Reason.COMPLETED, Reason.BEGIN_AGAIN,
        Reason.WAITING_TO_BEGIN_AGAIN, Reason.POLICY, Reason.SPEC_UPDATED,
        Reason.HANDED_OVER, Reason.RELIEVED, Reason.HEDGED, Reason.MOVED_ON,
    }
)  # fmt: skip
COMMIT_SKIPPED = "CommitSkipped"
"""The reason of Events about commits that could not be resumed from."""

RESIZED = "Resized"
"""The reason of Events about the number of workers with which an elastic job trains."""

_LONGEST = 1024
"""Maximum length of the text of an Event in bytes; the API server refuses a longer one."""

MAX_PENDING = 10_000
"""Length of the queue of Events: those of 3,000 fallbacks."""

RATE, BURST = 20.0, 25
"""Events per second on average, and at once."""

LONGEST_DELAY: Seconds = 10.0
"""Maximum time for which Events are kept back while jobs wait or are reconciled. While many jobs fall back at once, the
API server creates their next attempts first."""


@dataclass(frozen=True, slots=True)
class Note:
    """An Event to record."""

    reason: str
    action: str
    message: str
    kind: Literal["Normal", "Warning"] = "Warning"


@dataclass(frozen=True, slots=True)
class _Emitted:
    """An Event in the queue. `at` is when it was emitted."""

    job: JobRecord
    note: Note
    at: Instant


def notes_of(decision: Decision, *, deleting: bool = False) -> Iterator[Note]:
    """The Events of a decision. `deleting`: the job is suspended because it is being deleted."""
    for loss in decision.losses:
        verb = "will lose" if loss.noticed else "lost"
        yield Note(loss.cause, "Count", f"attempt {loss.attempt} on {loss.tier} {verb} {loss.pod}")
    for change in decision.standby_changes:
        yield Note(change.reason, "Standby", change.sentence, "Normal")
    for move, follows in zip_longest(decision.moves, decision.moves[1:]):
        if move.reason in (Reason.GONE, Reason.MOVED_ON) and follows is not None:
            continue  # The next Event says which attempt it follows.
        if deleting and move.reason is Reason.SUSPEND_REQUESTED:
            yield Note(DELETE_REQUESTED, str(move.target), _deleted(move), "Normal")
            continue
        yield Note(move.reason, str(move.target), _message(move), "Normal" if move.reason in _NORMAL else "Warning")


def resize_notes(before: JobState, after: JobState) -> Iterator[Note]:
    """The Event of a changed number of workers of an elastic job."""
    if (size := resized(before, after)) is not None:
        kind: Literal["Normal", "Warning"] = "Normal" if size[0] >= max(size[1:]) else "Warning"
        yield Note(RESIZED, "Train", f"attempt {after.number} on {after.tier} {size_text(*size)}", kind)


def note_of(problem: Diagnosis) -> Note:
    """The Event of a problem."""
    return Note(problem.reason, "Check", problem.message)


def _deleted(move: Move) -> str:
    if move.target is Stage.SUSPENDED:
        return "all objects of the job are gone; it is deleted"
    return f"attempt {move.attempt} on {move.tier}: the job is deleted; the attempt commits and stops"


def _message(move: Move) -> str:
    where = f"attempt {move.attempt} on {move.tier}" if move.tier and move.source is not Stage.IDLE else ""
    return ": ".join(part for part in (where, move.message) if part) or f"the job is {move.target}"


class Events:
    """Writes Events about TieredJobs in the background, so that no job waits for them. `instance` names the
    controller, `no_backlog` is set while no job waits or is reconciled.

    If the queue of Events is full, the newest are dropped.
    """

    def __init__(
        self,
        client: Client,
        *,
        clock: Clock,
        instance: str,
        no_backlog: asyncio.Event,
    ) -> None:
        self._client = client
        self._clock = clock
        self._instance = instance
        self._no_backlog = no_backlog
        self._busy_since: Seconds | None = None
        self._throttle = Throttle(RATE, BURST, clock)
        self._order = itertools.count()
        self._pending: asyncio.Queue[_Emitted] = asyncio.Queue(MAX_PENDING)

    def emit(self, job: JobRecord, note: Note) -> None:
        """Queue the Event."""
        with suppress(asyncio.QueueFull):
            self._pending.put_nowait(_Emitted(job, note, self._clock.now()))

    async def run(self) -> None:
        """Write queued Events until cancelled."""
        while True:
            emitted = await self._pending.get()
            await self._let_jobs_go_first()
            await self._throttle.take()
            await self._write(emitted.job, emitted.note, emitted.at)
            self._pending.task_done()

    async def _let_jobs_go_first(self) -> None:
        """Wait while jobs wait, but no longer than `LONGEST_DELAY` after they began to wait. The age of the Event does
        not matter: after the start of many jobs a backlog of Events takes minutes."""
        if self._no_backlog.is_set():
            self._busy_since = None
            return
        if self._busy_since is None:
            self._busy_since = self._clock.ticks()
        left = self._busy_since + LONGEST_DELAY - self._clock.ticks()
        if left > 0:
            await wait_at_most(self._clock, left, self._no_backlog)
            if self._clock.ticks() < self._busy_since + LONGEST_DELAY:
                self._busy_since = None

    async def _write(self, job: JobRecord, note: Note, emitted_at: Instant) -> None:
        at = utc_microseconds(emitted_at)
        body = {
            "apiVersion": WRITTEN.api_version,
            "kind": WRITTEN.kind,
            "metadata": {
                "name": f"{job.name}.{int(emitted_at * 1e6):x}{next(self._order) % 0x1000:03x}",
                "namespace": job.namespace,
            },
            "eventTime": at,
            "reportingController": "spotladder.io/controller",
            "reportingInstance": self._instance,
            "type": note.kind,
            "reason": note.reason,
            "action": note.action,
            "note": one_line(note.message, _LONGEST).encode()[:_LONGEST].decode(errors="ignore"),
            "regarding": {
                "apiVersion": API_VERSION,
                "kind": TIEREDJOBS.kind,
                "name": job.name,
                "namespace": job.namespace,
                "uid": job.uid,
                "resourceVersion": job.resource_version,
            },
        }
        with suppress(SpotladderError):
            await self._client.create(WRITTEN, body)
