"""The commit logs of a test's jobs, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.ending import end_job
from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.progress import Follower
from spotladder.checkpoints.standby import is_held
from spotladder.core.model import Progress
from spotladder.errors import SpotladderError
from spotladder.operator.storage.bucket_log import keep_outputs
from spotladder.operator.storage.commit_logs import EndOfLog, LogAddress
from spotladder.records import stored
from spotladder.records.model import Record, encode
from tests.checkpoints.memory_store import MemoryStore


class MemoryBucket:
    """The commit logs of all jobs of a test, in memory. `broken` is the error that every access raises."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.broken: SpotladderError | None = None
        self.ended: list[tuple[str, str]] = []
        self.opened: list[LogAddress] = []

    def open(self, address: LogAddress) -> _TestLog:
        self.opened.append(address)
        return _TestLog(self, address)

    def start(self, namespace: str, job: str, attempt: int) -> None:
        """Start the attempt in the log, as the program does, unless it has started."""
        log = CommitLog(self.store, job, namespace=namespace)
        started = log.read().start
        if started is None or started.attempt < attempt:
            log.start(attempt, "")

    def commit(self, namespace: str, job: str, *, attempt: int, step: int, metrics: Mapping[str, float] = {}) -> None:
        """Start the attempt in the log and commit `step` of 100, as the program does."""
        writer = CommitLog(self.store, job, namespace=namespace).start(attempt, "")
        writer.commit(step, [], total=100, metrics=dict(metrics))


class _TestLog:
    def __init__(self, bucket: MemoryBucket, address: LogAddress) -> None:
        self._bucket = bucket
        self._log = CommitLog(bucket.store, address.job, namespace=address.namespace, uid=address.uid)
        self._follower = Follower(self._log)

    def progress(self) -> Progress:
        if self._bucket.broken:
            raise self._bucket.broken
        return self._follower.progress()

    def heartbeat(self) -> StoredHeartbeat | None:
        start = self._follower.history.start
        return heartbeat.read(self._log.store, start.attempt, start.seq) if start is not None else None

    def is_held(self, attempt: int) -> bool:
        return is_held(self._log.store, attempt)

    def end(self, outcome: str, attempt: int, message: str, keep: int) -> EndOfLog:
        if self._bucket.broken:
            raise self._bucket.broken
        kept = end_job(self._log, outcome, keep=keep, attempt=attempt, message=message)
        self._bucket.ended.append((self._log.owner.job, outcome))
        return EndOfLog(kept, self._follower.progress())

    def keep(self, texts: Mapping[Output, str]) -> None:
        if self._bucket.broken:
            raise self._bucket.broken
        keep_outputs(self._log, texts)

    def commits(self) -> tuple[Commit, ...]:
        return self._follower.history.commits

    def record(self, records: Sequence[Record], after: int | None) -> int:
        if self._bucket.broken:
            raise self._bucket.broken
        lines = [encode(record) for record in records]
        return stored.append(stored.of_job(self._log.store, self._log.owner.uid), lines, after)
