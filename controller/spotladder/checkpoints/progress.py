"""A job's progress as its log records it, for controllers. Needs only read access."""

from __future__ import annotations

from spotladder.checkpoints.history import History
from spotladder.checkpoints.log import CommitLog
from spotladder.core.model import Progress


class Follower:
    """Polls a log and reads only the entries that are new since the last call."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self.history = History()

    def progress(self) -> Progress:
        """The newest commit now, and the newest attempt that has started. Raises StoreUnavailable, LogCorrupt."""
        self.history = self._log.follow(self.history)
        return progress_of(self.history)


def progress(log: CommitLog) -> Progress:
    """`Follower.progress` for a single call."""
    return Follower(log).progress()


def progress_of(history: History) -> Progress:
    """The part of a history that the decision core uses."""
    newest, start = history.newest, history.start
    hands_over, stands_by = (start.hands_over, start.stands_by) if start is not None else (False, False)
    workers = start.workers if start is not None else 0
    if newest is None:
        return Progress(attempt=history.attempt, hands_over=hands_over, stands_by=stands_by, workers=workers)
    skipped = [str(one) for commit in history.commits if commit.attempt == newest.attempt for one in commit.skipped]
    words = "; ".join(skipped)
    return Progress(
        newest.step, newest.total, newest.at, history.attempt, words, hands_over, stands_by, newest.seconds, workers
    )


def went_back(known: Progress, read: Progress) -> str:
    """What is missing from a log whose progress was `known` and is now `read`; "" if nothing is missing.

    A log only grows: if it has less, it is another folder (a file system that is not mounted) or was removed.
    """
    if read.attempt >= known.attempt and not (read.committed_at is None and known.committed_at is not None):
        return ""
    what = f"step {known.step} was committed" if known.committed_at is not None else f"attempt {known.attempt} started"
    found = f"has step {read.step}" if read.committed_at is not None else "has no commit"
    return f"{what}, and the commit log {found} now"
