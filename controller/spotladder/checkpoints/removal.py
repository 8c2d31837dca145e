"""Removes everything that a job has written to its checkpoint folder, even if its log cannot be read.

1. Objects of another job are never removed: an entry that names another job, or that a newer spotladder has written,
   makes the removal fail. If no entry names an owner, the caller must know that the log is its own.
2. Only objects of the log's layout are removed. All other objects in the folder stay.
3. The newest entries are removed first, then the older ones, then the files. A removal that is interrupted leaves an
   older log that is readable, or one that a second removal can finish.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from spotladder.checkpoints.entries import NewerLog, Snapshot, Start, decode
from spotladder.checkpoints.entry_keys import key_of, number_of
from spotladder.checkpoints.history import History
from spotladder.checkpoints.store import listed
from spotladder.errors import LogCorrupt

if TYPE_CHECKING:
    from spotladder.checkpoints.log import CommitLog

_FILE = re.compile(
    r"(attempts|outputs(/[\w-]+)?)/\d{4,}(\.\d+)?/.+|probes/\d{8}-.+|records/[\w-]+/\d{8}\.jsonl\.gz|run-id|aim-run"
    r"|source/[0-9a-f]{64}\.zip|compiled/\d{8,}-\d{4,}-[0-9a-f]{12}\.tar"
)


def remove(log: CommitLog, *, ours: bool = False) -> None:
    """Remove the log's entries and all files of its attempts. `ours`: the caller knows that they belong to this job.

    Raises ForeignLog, NewerLog or LogCorrupt, before it removes anything, if the log may belong to another job;
    StoreUnavailable.
    """
    keys = [meta.key for meta in listed(log.store, "")]
    numbers = sorted((seq for key in keys if (seq := number_of(key)) is not None), reverse=True)
    _check_owner(log, numbers, ours=ours)
    for seq in numbers:
        log.store.delete([key_of(seq)])
    log.store.delete([key for key in keys if _FILE.fullmatch(key)])


def _check_owner(log: CommitLog, numbers: list[int], *, ours: bool) -> None:
    named = ours or not numbers
    damage: LogCorrupt | None = None
    for seq, content in zip(numbers, log.store.get_many(list(map(key_of, numbers))), strict=True):
        try:
            entry = decode(content or b"", f"{log.uri}/{key_of(seq)}", seq)
        except NewerLog:
            raise
        except LogCorrupt as error:
            damage = damage or error
            continue
        if isinstance(entry, Start | Snapshot):
            log.checked(History(owner=entry.owner))
            named = True
    if not named:
        raise LogCorrupt(
            f"{damage or log.uri}; no entry names the log's owner, so it is not removed: if it is this job's, delete "
            f"{log.uri} yourself"
        )
