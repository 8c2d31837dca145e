"""Garbage collection: delete checkpoints that nobody resumes from any more, and keep the log short.

The order makes every moment in between harmless. First a `drop` entry says that the checkpoints no longer count; it
is fenced like a commit. Then their files are deleted. Only then a `snapshot` entry may forget them; a crash before it
leaves the drop in the log, and the next collection deletes again. Entries behind which a snapshot stands are deleted
last: every reader has stopped reading at the snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from spotladder.checkpoints.entries import Commit, Drop, Snapshot
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.history import History
from spotladder.errors import InvalidSpec

COMPACT_AFTER = 64
"""Entries behind the last snapshot that make a new one worth while."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection did: the commits that no longer count, objects and bytes deleted, log entries compacted."""

    dropped: tuple[Commit, ...] = ()
    objects: int = 0
    size: int = 0
    entries: int = 0


def garbage(log: EntryLog, history: History, keep: int, *, final: bool = False) -> tuple[Commit, ...]:
    """The commits that a collection would drop now. Only reads."""
    if keep < 1:
        raise InvalidSpec(f"keep {keep}: at least the newest commit must be kept", path="checkpoints.keep")
    return history.garbage(keep, broken=_broken(log, history, keep), final=final)


def collect(
    log: EntryLog,
    history: History,
    keep: int,
    fence: Callable[[History], None] = lambda _: None,
    deleted: set[str] | None = None,
    *,
    final: bool = False,
) -> tuple[History, Collected]:
    """Drop all but the newest `keep` commits and, unless `final` or the job has ended, the newest of each attempt.

    `fence` raises Fenced when the caller may not delete any more. `deleted` are dropped paths whose files the caller
    has deleted already; it is added to. Returns the history after it.
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
    if history.since_snapshot > COMPACT_AFTER:
        history, done = _compact(log, history, fence, done)
    return history, done


def _broken(log: EntryLog, history: History, keep: int) -> set[str]:
    """Of the newest commits, those whose files are not all there: they must not displace a whole one."""
    broken: set[str] = set()
    whole = 0
    for commit in reversed(history.commits):
        if whole == keep:
            break
        found = {meta.key: meta.size for meta in log.store.list(commit.path + "/")}
        if all(found.get(f"{commit.path}/{file.name}") == file.size for file in commit.files):
            whole += 1
        else:
            broken.add(commit.path)
    return broken


def _compact(
    log: EntryLog, history: History, fence: Callable[[History], None], done: Collected
) -> tuple[History, Collected]:
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
    superseded = [meta.key for meta in log.store.list("log/") if meta.key < f"log/{entry.seq:08d}.json"]
    log.store.delete(superseded)
    return history, replace(done, entries=len(superseded))


def _delete(log: EntryLog, paths: Iterable[str]) -> Collected:
    objects = size = 0
    for path in paths:
        found = list(log.store.list(f"{path}/"))
        log.store.delete([meta.key for meta in found])
        objects += len(found)
        size += sum(meta.size for meta in found)
    return Collected(objects=objects, size=size)
