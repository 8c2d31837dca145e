"""What only the output of a program shows: outages of the checkpoint store, and progress of a program that commits
nothing.

The controller may reach a bucket that the pods do not reach, or may not be allowed to read it. Then the program's log
lines about the outage (`output.outage`) are the only evidence. A program that does not use the library writes neither
commits nor heartbeats: output that grows is its sign of life.

1. Output is read, at long intervals, only while a job has not committed for longer than its interval, so most jobs are
   never read. All jobs share a rate of reads: when thousands of jobs stop to commit, each is read less often.
2. No reconcile waits for it. New information requeues the job, and so does output that has not grown.
3. A line that no longer changes, or that is older than the newest commit, is ignored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from spotladder.checkpoints.outputs import Output
from spotladder.clusters.clock import Clock
from spotladder.clusters.throttle import Throttle
from spotladder.core.model import Instant, Progress, Seconds
from spotladder.core.situation import LIVE
from spotladder.operator.inventory.clusters import Located
from spotladder.operator.inventory.inventory import JobKey
from spotladder.operator.loaded import Loaded
from spotladder.operator.storage.program_output import printed
from spotladder.operator.storage.readings import interval_of
from spotladder.output.outage import Outage, ReportedOutage, last_reported

QUIET_TIME: Seconds = 60.0
"""Time without a commit, beyond an interval in seconds, after which the output of a job is read."""

FIRST_POLL_INTERVAL: Seconds = 30.0
"""Delay between the first two reads of a job without an outage. Each further delay is twice as long."""

LONGEST_POLL_INTERVAL: Seconds = 300.0
"""Maximum delay between two reads."""

OUTAGE_POLL_INTERVAL: Seconds = 60.0
"""Delay between two reads during an outage; the program logs a line as often."""

LINE_TTL: Seconds = 300.0
"""Age at which an unchanged line is attributed to a process that is gone."""

LINES = 1_000
"""Number of lines that are requested from the driver, or from one rank."""

AT_ONCE = 8
"""Number of jobs whose output is read concurrently."""

READS_PER_SECOND = 1.0
"""Maximum rate of the reads of all jobs together, beyond the first `AT_ONCE`. Each takes the API server a few calls."""

_printed = partial(printed, lines=LINES, ranks=1)


@dataclass(slots=True)
class _WatchedAttempt:
    """A live attempt. `quiet_at` is when its output should be read. `reported` is the last outage that it reported,
    since `since`; the same line is reported since `reported_at`. `output` is the digest of the output at the newest
    read, at `read_at`, and it is the same since `grown_at`; None before the program has printed something."""

    attempt: int
    found: Located
    quiet_at: Instant
    reported: ReportedOutage | None = None
    since: Instant = 0.0
    reported_at: Instant = 0.0
    output: int | None = None
    grown_at: Instant = 0.0
    read_at: Instant = 0.0
    task: asyncio.Task[None] | None = None


class Outages:
    """Use as `async with Outages(…)`. Calls `changed` when a program reports a new outage."""

    def __init__(
        self,
        *,
        clock: Clock,
        changed: Callable[[JobKey], None],
        read: Callable[[int, Located], Awaitable[Mapping[Output, str]]] = _printed,
    ) -> None:
        self._clock = clock
        self._changed = changed
        self._read = read
        self._watched: dict[JobKey, _WatchedAttempt] = {}
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._throttle = Throttle(READS_PER_SECOND, AT_ONCE, clock)

    async def __aenter__(self) -> Outages:
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [watched.task for watched in self._watched.values() if watched.task is not None]
        for key in list(self._watched):
            self.forget(key)
        await asyncio.gather(*tasks, return_exceptions=True)

    def of(self, key: JobKey, attempt: int, progress: Progress) -> Outage | None:
        """The outage that the attempt's program reports now, with its start by the controller's clock."""
        watched = self._watched.get(key)
        if watched is None or watched.attempt != attempt or watched.reported is None:
            return None
        reported = watched.reported.outage
        if progress.committed_at is not None and progress.committed_at > reported.since:
            return None
        return Outage(watched.since, reported.message)

    def quiet_for(self, key: JobKey, attempt: int) -> Seconds | None:
        """The time for which the program's output had not grown when it was last read; None if it was not read, or
        was empty."""
        watched = self._watched.get(key)
        if watched is None or watched.attempt != attempt or watched.output is None:
            return None
        return watched.read_at - watched.grown_at

    def watch(self, loaded: Loaded) -> None:
        """Follow the live attempt from now on if its program runs."""
        state, key = loaded.state, loaded.record.key
        live = state.attempt if state.stage in LIVE else None
        seen = loaded.seen.attempt(live.number) if live else None
        found = loaded.found.attempts.get(live.number) if live else None
        if live is None or found is None or found.cluster.problem or seen is None or seen.exit is not None:
            return self.forget(key)
        times = (live.created_at, live.all_ready_at, state.progress_at)
        quiet_at = max(time for time in times if time is not None) + interval_of(loaded.job) + QUIET_TIME
        watched = self._watched.get(key)
        if watched is None or watched.attempt != live.number:
            self.forget(key)
            watched = self._watched[key] = _WatchedAttempt(live.number, found, quiet_at)
            watched.task = asyncio.create_task(self._follow(key, watched))
        watched.found, watched.quiet_at = found, quiet_at

    def forget(self, key: JobKey) -> None:
        """Forget an attempt or a job that is over."""
        watched = self._watched.pop(key, None)
        if watched is not None and watched.task is not None:
            watched.task.cancel()

    async def _follow(self, key: JobKey, watched: _WatchedAttempt) -> None:
        pause = 0.0
        while True:
            await self._clock.sleep(max(pause, watched.quiet_at - self._clock.now()))
            if self._clock.now() >= watched.quiet_at:
                await self._throttle.take()
            if self._clock.now() < watched.quiet_at:  # It has committed in the meantime.
                pause = 0.0
                continue
            async with self._gate:
                before, texts = watched.reported, await self._read(watched.attempt, watched.found)
            grown = self._has_grown(watched, texts)
            if texts:
                self._note(watched, last_reported("\n".join(texts.values())))
            else:
                self._note(watched, before)
            if _message(before) != _message(watched.reported) or not grown:
                self._changed(key)
            longer = min(LONGEST_POLL_INTERVAL, max(FIRST_POLL_INTERVAL, 2 * pause))
            pause = OUTAGE_POLL_INTERVAL if watched.reported is not None else longer

    def _has_grown(self, watched: _WatchedAttempt, texts: Mapping[Output, str]) -> bool:
        """Whether the output differs from that of the last read; True if it cannot be read."""
        if not texts:
            return True
        now, output = self._clock.now(), hash(tuple(sorted((str(key), text) for key, text in texts.items())))
        grown = output != watched.output
        if grown:
            watched.output, watched.grown_at = output, now
        watched.read_at = now
        return grown

    def _note(self, watched: _WatchedAttempt, reported: ReportedOutage | None) -> None:
        now, before = self._clock.now(), watched.reported
        if reported is None:
            watched.reported = None
        elif before is None or reported.line != before.line:
            same = before is not None and before.outage.since == reported.outage.since
            watched.since = watched.since if same else now
            watched.reported, watched.reported_at = reported, now
        elif now - watched.reported_at >= LINE_TTL:
            watched.reported = None


def _message(reported: ReportedOutage | None) -> str | None:
    return None if reported is None else reported.outage.message
