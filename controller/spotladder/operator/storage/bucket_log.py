"""A job's commit log in a bucket or on a disk, as the operator reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module

from spotladder.checkpoints import heartbeat, outputs
from spotladder.checkpoints.ending import end_job
from spotladder.checkpoints.entries import Commit
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.progress import Follower
from spotladder.checkpoints.standby import is_held
from spotladder.checkpoints.store import RightsRefused, StoreRefused
from spotladder.checkpoints.store_check import StoreUnsafe, check_today
from spotladder.core.model import Progress
from spotladder.errors import SpotladderError
from spotladder.operator.storage.commit_logs import EndOfLog, LogAddress
from spotladder.output.redact import redacted, secret_values
from spotladder.records import stored
from spotladder.records.model import Record, encode


def bucket_logs() -> Callable[[LogAddress], BucketLog]:
    """Opens commit logs. Loads the library of buckets at once: its first import must not happen in several threads."""
    for name in ("obstore.exceptions", "obstore.store"):
        import_module(name)
    return BucketLog


class BucketLog:
    """A commit log in a bucket or on a disk."""

    def __init__(self, address: LogAddress) -> None:
        grant = address.grant
        host = grant.endpoint.host if grant.endpoint is not None else ""
        store = open_store(address.uri, grant.environment, isolated=grant.isolated, only_host=host)
        self._log = EntryLog(store, address.job, namespace=address.namespace, uid=address.uid)
        read = EntryLog(store, address.job, namespace=address.namespace, uid=address.uid, brief=True)
        self._follower = Follower(read)
        self._secrets = secret_values(grant.secret)
        self._checked = not self._log.store.endpoint  # The pods have their own mounts of a folder.

    def progress(self) -> Progress:
        try:
            found = self._follower.progress()
        except RightsRefused:
            with suppress(SpotladderError):  # The file may be incomplete while it is replaced: the next read retries.
                self._log.store.renew()
            raise
        if not found.attempt:
            self._check()
        return found

    def _check(self) -> None:
        """Check that the store can fence the first attempt. Without write access, the program does it."""
        if self._checked:
            return
        try:
            check_today(self._log.store)
        except StoreUnsafe:
            raise
        except StoreRefused:
            pass
        self._checked = True

    def heartbeat(self) -> StoredHeartbeat | None:
        """The heartbeat of the newest attempt as of the last `progress`."""
        start = self._follower.history.start
        if start is None:
            return None
        return heartbeat.read(self._log.store, start.attempt, start.seq, self._log.owner.uid)

    def is_held(self, attempt: int) -> bool:
        return is_held(self._log.store, attempt)

    def end(self, outcome: str, attempt: int, message: str, keep: int) -> EndOfLog:
        left = end_job(self._log, outcome, keep=keep, attempt=attempt, message=message)
        return EndOfLog(left, self._follower.progress())

    def keep(self, texts: Mapping[Output, str]) -> None:
        keep_outputs(self._log, texts, self._secrets)

    def commits(self) -> tuple[Commit, ...]:
        """The commits in the log as of the last `progress`."""
        return self._follower.history.commits

    def record(self, records: Sequence[Record], after: int | None) -> int:
        if after is None:
            self._log.read()  # Raises ForeignLog: the folder belongs to another job.
        lines = [encode(record, partial(redacted, known=self._secrets)) for record in records]
        return stored.append(stored.of_job(self._log.store, self._log.owner.uid), lines, after)


def keep_outputs(log: EntryLog, texts: Mapping[Output, str], known: Sequence[str] = ()) -> None:
    """Store the output of the job's programs beside its log without secrets, of which `known` are known. Raises
    ForeignLog: the folder belongs to another job.

    Call it in a thread: the search for secrets takes up to a second.
    """
    log.read()
    store = outputs.of_job(log.store, log.owner.uid)
    for output, text in texts.items():
        # The cut comes first and leaves more than is stored: no secret loses the beginning by which it is recognized.
        outputs.keep(store, output, redacted(text[-2 * outputs.LONGEST :], known))
    outputs.trim(store)
