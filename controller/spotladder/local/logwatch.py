"""Polls the commit log in the background, so that a slow or unavailable bucket does not delay the run."""

from __future__ import annotations

import threading
from contextlib import suppress

from spotladder.checkpoints.ending import end_job
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.progress import Follower, went_back
from spotladder.checkpoints.store import RightsRefused
from spotladder.core.model import Progress
from spotladder.errors import LogCorrupt, SpotladderError
from spotladder.records.model import Committed

POLL_INTERVAL = 1.0
"""Seconds between two listings of the commit log."""


class LogWatch:
    """Polls the log in a thread. All results are those of the last successful poll."""

    def __init__(self, log: CommitLog, keep: int, spacing: float = POLL_INTERVAL) -> None:
        self._log, self._keep = log, keep
        self._follower = Follower(log)
        self._spacing = spacing
        self._wake = threading.Event()
        self._asked = self._answered = 0
        self._over = False
        self._ended_as = ""
        self._lock = threading.Lock()
        self._new: list[Committed] = []
        self._seen_to = -1
        self._error: str | None = None
        self.progress = Progress()
        self.gone = ""
        """Commits that have disappeared from the log."""
        self._poll()
        self._thread = threading.Thread(target=self._follow, name="spotladder-log", daemon=True)

    def start(self) -> None:
        """Start polling the log. Existing commits are not reported as new."""
        self._new.clear()
        self._thread.start()

    def poll_now(self) -> None:
        """Poll at once."""
        self._asked += 1
        self._wake.set()

    @property
    def current(self) -> bool:
        """Whether the log has been polled since the last call of `poll_now`."""
        return self._answered == self._asked

    def take_new(self) -> list[Committed]:
        """The commits since the last call, oldest first, as records of the timeline."""
        with self._lock:
            new, self._new = self._new, []
        return new

    def take_error(self) -> str | None:
        """The error of the last poll; each kind of error is returned once."""
        with self._lock:
            error, self._error = self._error, None
        return error

    def end(self, *, succeeded: bool, message: str) -> None:
        """Append the job's outcome, unless the log has it, delete the checkpoints that are no longer needed, and poll.

        Raises StoreUnavailable, Fenced, LogCorrupt.
        """
        outcome = "Succeeded" if succeeded else "Failed"
        if self._ended_as != outcome:
            end_job(self._log, outcome, keep=self._keep, message=message)
            self._ended_as = outcome
            self._poll()

    def close(self) -> None:
        """Stop polling after one last poll."""
        self._over = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10.0)

    def _follow(self) -> None:
        last_error = ""
        while not self._over:
            self._wake.wait(self._spacing)
            self._wake.clear()
            asked = self._asked
            try:
                self._poll()
                last_error = ""
            except SpotladderError as error:
                if isinstance(error, RightsRefused):
                    with suppress(SpotladderError):  # The file may be incomplete while it is replaced: poll again.
                        self._log.store.renew()
                if str(error) != last_error:
                    last_error = str(error)
                    with self._lock:
                        self._error = last_error
            self._answered = asked

    def _poll(self) -> None:
        progress = self._follower.progress()
        self.gone = went_back(self.progress, progress)
        if self.gone:
            raise LogCorrupt(f"{self._log.uri}: {self.gone}")
        new = [commit for commit in self._follower.history.commits if commit.seq > self._seen_to]
        with self._lock:
            self._new.extend(map(Committed.of, new))
            self._seen_to = max([self._seen_to, *(commit.seq for commit in new)])
            self.progress = progress
