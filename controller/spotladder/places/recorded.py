"""Recorded jobs without their cluster: those of a folder of checkpoints, simulated runs, or the timeline of a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spotladder.checkpoints import outputs
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.store import Store, folder_of
from spotladder.core.model import Instant
from spotladder.display.figures import numbered
from spotladder.display.job_text import ENDED
from spotladder.display.report import gather
from spotladder.display.report.facts import RunFacts
from spotladder.display.unattended import RECONCILE_TIMEOUT
from spotladder.errors import EnvironmentFailure, SpotladderError
from spotladder.places.deleted import BUCKETS
from spotladder.places.fleet import ClusterSeen
from spotladder.places.place import Object, Printed
from spotladder.records import stored, timeline
from spotladder.records.recorded import Recorded
from spotladder.records.recorded_job import looked_at, recorded_in
from spotladder.records.recorded_jobs import MAX_JOBS, as_job, recorded_jobs

POLL_INTERVAL, BUCKET_POLL_INTERVAL = 5.0, 300.0
"""Seconds between two looks at the records in a folder of this machine, and in a bucket."""

INTERRUPTED = "Interrupted"
"""The phase of a job whose records stop before it has ended."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """A job with the folder of its records and its uid; without a folder, its records are a timeline. `live`: the
    newest record is so new that the job may be running."""

    job: Object
    live: bool
    folder: Store | None
    uid: str


class RecordedJobs:
    """The jobs at an address: a folder of checkpoints (`checkpoints.uri`), the folder of one job in it, or the
    timeline.jsonl of a run."""

    name = "records"

    def __init__(self, address: str) -> None:
        self.title, self.problem = address, ""
        self._streams: dict[tuple[str, str], _Stream] = {}

    def jobs(self) -> Sequence[Object]:
        return [stream.job for stream in self._streams.values()]

    def tiers(self) -> Sequence[Object]:
        return ()

    async def facts(self, namespace: str, name: str) -> RunFacts | None:
        stream = self._streams.get((namespace, name))
        return None if stream is None else await asyncio.to_thread(lambda: gather(self._recorded(stream)))

    async def printed(self, namespace: str, name: str, attempt: int) -> Sequence[Printed]:
        stream = self._streams.get((namespace, name))
        if stream is None or stream.folder is None:
            return ()
        return await asyncio.to_thread(stored_output, stream.folder, stream.uid, attempt)

    async def clusters(self) -> Sequence[ClusterSeen]:
        return ()

    async def wait_for_sync(self) -> None:
        """Return at once: `look` comes before the page."""

    async def follow(self, changed: Callable[[str], None]) -> None:
        while True:
            await asyncio.sleep(BUCKET_POLL_INTERVAL if self.title.startswith(BUCKETS) else POLL_INTERVAL)
            before = self.problem, self.jobs()
            try:
                await asyncio.to_thread(self.look)
            except SpotladderError as error:
                self.problem = str(error)
            if before != (self.problem, self.jobs()):
                changed("")

    def look(self) -> None:
        """Read the first and the newest records of each job that had not ended before. `problem` says which jobs are
        missing. Raises EnvironmentFailure if there are no records, InvalidSpec for an address of no store, and
        StoreUnavailable."""
        found = self._found(time.time())
        known = [each for each in found if each is not None]
        if not known:
            raise EnvironmentFailure(
                f"{self.title}: has no records of a job that this version can read: name a folder of checkpoints, the "
                "folder of a job in it, or the timeline.jsonl of a run"
            )
        lost = len(found) - len(known)
        left = f"the records of {numbered(lost, 'job')} have no beginning" if lost else ""
        most = f"at most {MAX_JOBS} jobs are shown: name the folder of one" if len(found) >= MAX_JOBS else ""
        self.problem = "; ".join(filter(None, (left, most)))
        known.sort(key=lambda stream: str(stream.job["metadata"]["creationTimestamp"]))
        self._streams = {(each.job["metadata"]["namespace"], each.job["metadata"]["name"]): each for each in known}

    def _found(self, now: Instant) -> list[_Stream | None]:
        """A stream for each job; None for one that cannot be read."""
        if Path(self.title).is_file():
            return [_stream(timeline.read(Path(self.title)), now)]
        store = open_store(self.title)
        names = store.folders()
        if stored.FOLDER in names:  # The folder of one job.
            above, _, name = self.title.rpartition("/")
            store, names = open_store(above or "/"), [name]
        ended = {stream.uid: stream for stream in self._streams.values() if stream.job["status"]["phase"] in ENDED}
        jobs = recorded_jobs(store, names, ended)
        return [*ended.values(), *(_stream(each.found, now, folder_of(store, each.name), each.uid) for each in jobs)]

    def _recorded(self, stream: _Stream) -> Recorded:
        if stream.folder is None:
            found = timeline.read(Path(self.title))
        else:
            found = recorded_in(stream.folder, stream.uid)
        return looked_at(found, time.time()) if stream.live else found


def _stream(found: Recorded, now: Instant, folder: Store | None = None, uid: str = "") -> _Stream | None:
    live = bool(found.records) and now - found.records[-1].at < RECONCILE_TIMEOUT
    job = as_job(found, str(found.state.phase) if live else INTERRUPTED, uid, active=live)
    if job is not None and not live:
        job["until"] = found.records[-1].at
    return None if job is None else _Stream(job, live, folder, uid)


def stored_output(folder: Store, uid: str, attempt: int, most: int | None = None) -> list[Printed]:
    """The output of the first `most` sources of this attempt that is stored beside the checkpoints of a job. Raises
    LogCorrupt, TooLarge, StoreUnavailable."""
    store = outputs.of_job(folder, uid)
    found = outputs.kept(store, attempt)[:most]
    texts = outputs.read(store, found)
    return [Printed(output.title, text) for output, text in zip(found, texts, strict=True)]
