"""Stores the output of attempts' programs beside their commit log before their pods are removed.

1. An attempt is read when its program has ended, since its operator may remove its pods before the decision, and once
   more before it is deleted. Output of the first read that cannot be read again is kept, too.
2. A JobSet that restarts in place deletes the pods of all its ranks. They are read as soon as one of them terminates
   and again with each further one, and stored when the last one is gone.
3. The deletion of an attempt waits for the read, at most `READING`, so that a log does not delay the next attempt.
   After the job has ended, the deletion waits up to `READING_AT_THE_END`. No deletion waits for the bucket.
4. Writes to an unavailable bucket are retried for a limited time; refused writes are not. Lost output is logged and
   does not affect the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import structlog

from spotladder.checkpoints.outputs import Output
from spotladder.clusters.clock import Clock
from spotladder.core.model import TERMINAL, Exit, Seconds
from spotladder.errors import SpotladderError
from spotladder.operator.inventory.clusters import Located
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.storage.commit_logs import Logs
from spotladder.operator.storage.program_output import printed
from spotladder.operator.storage.retries import Address, retried
from spotladder.workloads.kinds import main_kinds
from spotladder.workloads.workload import AttemptObjects

READING: Seconds = 2.0
"""Maximum time for which the deletion of an attempt waits for its output to be read."""

READING_AT_THE_END: Seconds = 20.0
"""The same for the last attempt of a job that has ended: Ray's dashboard takes seconds on a busy head."""

AT_ONCE = 16
"""Number of attempts whose output is read concurrently."""

_log = structlog.get_logger("spotladder")


@dataclass(slots=True)
class _AttemptOutput:
    """`texts` is the output read so far. `ended` and `last` are the two reads, `since` is when the last one began.
    `restarting` reads ranks that terminate in a restart in place; `going` are those that it has read."""

    texts: dict[Output, str] = field(default_factory=dict)
    since: Seconds = 0.0
    ended: asyncio.Task[None] | None = None
    last: asyncio.Task[None] | None = None
    restarting: asyncio.Task[None] | None = None
    going: frozenset[tuple[str, str]] = frozenset()


class Outputs:
    """Use as `async with Outputs(…)`: the exit cancels pending reads and writes."""

    def __init__(
        self,
        logs: Logs,
        *,
        clock: Clock,
        changed: Callable[[JobKey], None],
        read: Callable[[int, Located], Awaitable[Mapping[Output, str]]] = printed,
    ) -> None:
        self._logs = logs
        self._clock = clock
        self._changed = changed
        self._read = read
        self._attempts: dict[str, dict[int, _AttemptOutput]] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._gate = asyncio.Semaphore(AT_ONCE)

    async def __aenter__(self) -> Outputs:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._writing:
            await asyncio.wait(self._writing, timeout=READING)
        tasks = [task for known in self._attempts.values() for entry in known.values() for task in _tasks(entry)]
        for task in (*tasks, *self._writing):
            task.cancel()
        await asyncio.gather(*tasks, *self._writing, return_exceptions=True)

    def collect(self, loaded: Loaded, address: Address) -> None:
        """Read the live attempt's output once its program has ended, or restarts in place, in the background."""
        live = loaded.state.attempt
        seen = loaded.seen.attempt(live.number) if live else None
        found = loaded.found.attempts.get(seen.number) if seen is not None else None
        if seen is None or found is None:
            return
        if seen.exit in (None, Exit.LOST):
            return self._collect_restarts(loaded, seen.number, found, address)
        entry = self._entry(loaded, seen.number)
        if entry.ended is None and entry.last is None:
            entry.ended = asyncio.create_task(self._reading(entry, seen.number, found))

    def _collect_restarts(self, loaded: Loaded, attempt: int, found: Located, address: Address) -> None:
        top = found.objects.top
        if top is None or found.cluster.problem or main_kinds()[top.kind].driver_output(found.objects) is not None:
            return
        going = frozenset((pod.uid, pod.phase) for pod in found.objects.pods if pod.deleting or pod.phase == "Failed")
        known = self._attempts.get(loaded.record.uid, {}).get(attempt)
        if not going and (known is None or not known.texts):
            return
        entry = self._entry(loaded, attempt)
        if entry.last is not None or (entry.restarting is not None and not entry.restarting.done()):
            return
        if going - entry.going:
            entry.restarting = asyncio.create_task(self._reading(entry, attempt, found))
            # More pods may have terminated.
            entry.restarting.add_done_callback(lambda _: self._changed(loaded.record.key))
        elif over := {
            output: text for output, text in entry.texts.items() if output.restart < _oldest_restart(found.objects)
        }:
            entry.texts = {output: text for output, text in entry.texts.items() if output not in over}
            self._begin_to_write(over, address)
        entry.going = going

    async def before_delete(self, loaded: Loaded, attempt: int, address: Address) -> bool:
        """Whether the attempt may be deleted now. The first call reads its output and starts to write it. If the result
        was False, the job is requeued when it changes."""
        found = loaded.found.attempts.get(attempt)
        if found is None or found.cluster.problem or loaded.record.forced:
            return True
        entry = self._entry(loaded, attempt)
        if entry.last is None:
            entry.since = self._clock.ticks()
            entry.last = asyncio.create_task(self._last_reading(entry, attempt, found, address))
        if not entry.last.done():
            await asyncio.wait({entry.last}, timeout=READING)
        if entry.last.done() or loaded.state.stage not in TERMINAL:
            return True
        entry.last.add_done_callback(lambda _: self._changed(loaded.record.key))
        return self._clock.ticks() - entry.since >= READING_AT_THE_END

    def forget(self, uid: str) -> None:
        """Forget a job that is gone; pending writes continue."""
        for entry in self._attempts.pop(uid, {}).values():
            for task in _tasks(entry):
                task.cancel()

    def _entry(self, loaded: Loaded, attempt: int) -> _AttemptOutput:
        known = self._attempts.setdefault(loaded.record.uid, {})
        for number in [number for number in known if number not in loaded.found.attempts and number != attempt]:
            for task in _tasks(known.pop(number)):
                task.cancel()
        return known.setdefault(attempt, _AttemptOutput())

    async def _reading(self, entry: _AttemptOutput, attempt: int, found: Located) -> None:
        async with self._gate:
            entry.texts.update(await self._read(attempt, found))

    async def _last_reading(self, entry: _AttemptOutput, attempt: int, found: Located, address: Address) -> None:
        if before := {task for task in (entry.ended, entry.restarting) if task is not None}:
            await asyncio.wait(before)
        await self._reading(entry, attempt, found)
        if not entry.texts:
            return
        texts, entry.texts = entry.texts, {}
        self._begin_to_write(texts, address)

    def _begin_to_write(self, texts: Mapping[Output, str], address: Address) -> None:
        writing = asyncio.create_task(self._write(texts, address))
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)

    async def _write(self, texts: Mapping[Output, str], address: Address) -> None:
        try:
            await retried(self._clock, address, lambda log: self._logs.keep(log, texts))
        except SpotladderError as error:
            attempt = next(iter(texts)).attempt
            _log.warning("the output of an attempt could not be stored", attempt=attempt, error=str(error))


def _tasks(entry: _AttemptOutput) -> list[asyncio.Task[None]]:
    tasks = (entry.ended, entry.last, entry.restarting)
    return [task for task in tasks if task is not None and not task.done()]


def _oldest_restart(objects: AttemptObjects) -> int:
    """The oldest restart in place with an existing pod; without pods, the set's current restart."""
    restarts = [pod.restart for pod in objects.pods]
    return min(restarts) if restarts else objects.top.restarts if objects.top is not None else 0
