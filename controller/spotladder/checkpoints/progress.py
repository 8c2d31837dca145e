"""What a controller wants to know of a log: how far the job is. Needs read access only."""

from __future__ import annotations

from spotladder.checkpoints.history import History
from spotladder.checkpoints.log import CommitLog
from spotladder.core.model import Progress


class Follower:
    """Reads a log again and again; what was read once is not read again."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self.history = History()

    def progress(self) -> Progress:
        """The newest commit now, and the newest attempt that has started. Raises StoreUnavailable, LogCorrupt."""
        self.history = self._log.follow(self.history)
        return progress_of(self.history)


def progress(log: CommitLog) -> Progress:
    """`Follower.progress` for one look."""
    return Follower(log).progress()


def progress_of(history: History) -> Progress:
    """The part of a history that the decision core works on."""
    newest = history.newest
    if newest is None:
        return Progress(attempt=history.attempt)
    return Progress(newest.step, newest.total, newest.at, history.attempt)
