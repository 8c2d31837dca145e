"""Garbage collection: delete checkpoints that are no longer needed for a resume, and compact the log.

The order makes a crash at any point harmless:

1. A `drop` entry says that the checkpoints no longer count. It is fenced like a commit.
2. Their files are deleted. After a crash the drop is still in the log, and the next collection deletes them again.
3. A `snapshot` entry omits the dropped checkpoints.
4. The entries before the snapshot are deleted: readers stop at the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from spotladder.checkpoints.entries import Commit, Drop, Snapshot, encode
from spotladder.checkpoints.entry_keys import key_of
from spotladder.checkpoints.entry_log import LARGEST_TAIL, EntryLog
from spotladder.checkpoints.history import History
from spotladder.checkpoints.store import listed
from spotladder.errors import InvalidSpec

COMPACT_AFTER = 64
"""Number of entries after the last snapshot at which the log is compacted, unless they are large."""


@dataclass(frozen=True, slots=True)
class Collected:
    """Result of a collection: the dropped commits, and the numbers of objects and bytes of them that were deleted."""

    dropped: tuple[Commit, ...] = ()
    objects: int = 0
    size: int = 0


def garbage(log: EntryLog, history: History, keep: int, *, final: bool = False) -> tuple[Commit, ...]:
    """The commits that a collection would drop now. Changes nothing."""
    if keep < 1:
        raise InvalidSpec(f"keep {keep}: at least the newest commit must be kept", path="checkpoints.keep")
    return history.garbage(keep, broken=_broken(log, history, keep), final=final or _is_large(history))


def collect(
    log: EntryLog,
    history: History,
    keep: int,
    fence: Callable[[History], None] = lambda _: None,
    deleted: set[str] | None = None,
    *,
    final: bool = False,
) -> tuple[History, Collected]:
    """Drop all but the newest `keep` commits and, unless `final` or the job has ended, the newest of each attempt. A
    log that is large keeps no more than `keep`: a snapshot may have no room for those of all attempts.

    `fence` raises Fenced if the caller may no longer delete. `deleted` has the dropped paths whose files the caller
    has deleted already; this call adds to it. Returns the history after the collection.
    """
    dropped = garbage(log, history, keep, final=final)
    fence(history)
    if dropped:
        nonce = log.new_nonce()

        def drop(now: History) -> Drop:
            fence(now)
            return Drop(now.seq + 1, nonce, log.clock(), tuple(commit.path for commit in dropped))

        history, _ = log.append(history, drop)
    deleted = set() if deleted is None else deleted
    due = [path for path in history.dropped if path not in deleted]
    done = replace(_delete(log, due), dropped=dropped)
    deleted.update(due)
    if history.since_snapshot > COMPACT_AFTER or _is_large(history):
        history = _compact(log, history, fence)
    return history, done


def _broken(log: EntryLog, history: History, keep: int) -> set[str]:
    """The newest commits with missing files. They do not count towards `keep`, which is for complete commits."""
    broken: set[str] = set()
    complete = 0
    for commit in reversed(history.commits):
        if complete == keep:
            break
        found = {meta.key: meta.size for meta in listed(log.store, commit.path + "/")}
        if all(found.get(f"{commit.path}/{file.name}") == file.size for file in commit.files):
            complete += 1
        else:
            broken.add(commit.path)
    return broken


def _is_large(history: History) -> bool:
    """Whether the entries after the last snapshot may be half of what a reader accepts, if each is as large as the
    newest commit, which has the list of its files."""
    newest = history.newest
    return newest is not None and history.since_snapshot * len(encode(newest)) > LARGEST_TAIL // 2


def _compact(log: EntryLog, history: History, fence: Callable[[History], None]) -> History:
    nonce = log.new_nonce()
    deleted = frozenset(history.dropped)

    def snapshot(now: History) -> Snapshot:
        fence(now)
        return Snapshot(
            seq=now.seq + 1,
            nonce=nonce,
            at=log.clock(),
            owner=now.owner,
            start=now.start,
            commits=now.commits,
            dropped=tuple(path for path in now.dropped if path not in deleted),
            end=now.end,
        )

    history, entry = log.append(history, snapshot)
    log.store.delete([meta.key for meta in listed(log.store, "log/") if meta.key < key_of(entry.seq)])
    return history


def _delete(log: EntryLog, paths: Iterable[str]) -> Collected:
    objects = size = 0
    for path in paths:
        found = list(listed(log.store, f"{path}/"))
        log.store.delete([meta.key for meta in found])
        objects += len(found)
        size += sum(meta.size for meta in found)
    return Collected(objects=objects, size=size)
