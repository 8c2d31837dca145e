"""A job's progress as its log records it, for controllers. Needs only read access."""

from __future__ import annotations

from dataclasses import replace

from spotladder.checkpoints.brief import brief_history
from spotladder.checkpoints.entries import LONGEST_TEXT, Commit
from spotladder.checkpoints.entry_log import EntryLog
from spotladder.checkpoints.history import History
from spotladder.checkpoints.rank_folders import rank_of
from spotladder.core.model import CommitSize, Progress


class Follower:
    """Polls a log and reads only the entries that are new since the last call. If the log is `brief`, `history` has no
    files: a process that follows the logs of many jobs cannot keep them."""

    def __init__(self, log: EntryLog) -> None:
        self._log = log
        self._last = Progress()
        self.history = History()

    def progress(self) -> Progress:
        """The newest commit now, and the newest attempt that has started. Raises StoreUnavailable, LogCorrupt."""
        history = self._log.follow(self.history)
        found, newest = progress_of(history), history.newest
        if self._log.brief:
            if newest is not None and not newest.files and newest.seq == self._last.commit:
                found = replace(found, size=self._last.size)
            history = brief_history(history)
        self.history, self._last = history, found
        return found


def progress(log: EntryLog) -> Progress:
    """`Follower.progress` for a single call."""
    return Follower(log).progress()


def progress_of(history: History) -> Progress:
    """The part of a history that the decision core uses."""
    newest, start = history.newest, history.start
    known = Progress(attempt=history.attempt)
    if start is not None:
        known = replace(
            known, hands_over=start.hands_over, stands_by=start.stands_by, workers=start.workers, start=start.seq
        )
    if newest is None:
        return known
    skipped = [str(one) for commit in history.commits if commit.attempt == newest.attempt for one in commit.skipped]
    return replace(
        known,
        step=newest.step,
        total=newest.total,
        committed_at=newest.at,
        skipped="; ".join(skipped)[:LONGEST_TEXT],
        commit_seconds=newest.seconds,
        size=size_of(newest),
        commit=newest.seq,
        committed_by=newest.attempt,
    )


def size_of(commit: Commit) -> CommitSize:
    """The size of the commit. Every worker downloads the files outside the folders of ranks, and a rank without a
    folder also those of rank 0."""
    ranks = {rank_of(file.name) for file in commit.files} - {None}
    shared = [file.size for file in commit.files if len(ranks) <= 1 or rank_of(file.name) is None]
    return CommitSize(commit.size, sum(shared))


def went_back(known: Progress, read: Progress) -> str:
    """What is missing from a log whose progress was `known` and is now `read`; "" if nothing is missing.

    A log only grows: if it has less, it is another folder (a file system that is not mounted) or was removed.
    """
    if read.attempt >= known.attempt and not (read.committed_at is None and known.committed_at is not None):
        return ""
    what = f"step {known.step} was committed" if known.committed_at is not None else f"attempt {known.attempt} started"
    found = f"has step {read.step}" if read.committed_at is not None else "has no commit"
    return f"{what}, and the commit log {found} now"
