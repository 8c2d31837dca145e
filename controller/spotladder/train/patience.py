"""What a rank does while the store does not answer: it waits, tries again, and says so.

Only the store's absence is waited for. Refused credentials are waited for as long as they may still be replaced in
place (a file, a role, a login), for `CREDENTIALS_TIMEOUT` at most; everything else is raised at once.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from spotladder.backoff import delay
from spotladder.checkpoints.store import RightsRefused, Store, StoreRefused, renew
from spotladder.errors import StoreUnavailable
from spotladder.output.outage import Outage, away_line, back_line

T = TypeVar("T")
_log = logging.getLogger("spotladder.train")

FIRST_RETRY_INTERVAL = 0.5
"""Seconds until the first retry; each further interval is twice as long,"""

LONGEST_RETRY_INTERVAL = 30.0
"""and no longer than this."""

CREDENTIALS_TIMEOUT = 120.0
"""Seconds that refused credentials are read again: the kubelet updates a mounted Secret within about 90 s."""

LOG_INTERVAL = 60.0
"""Seconds between two log lines about the same outage."""


class Patience:
    """Whether the store answers one rank, and when to try again. May be used from several threads.

    `told` is called with every change: an outage, the newest error of it, None when the store answers again. `clock`
    is monotonic, `wall` the time that people read.
    """

    def __init__(
        self,
        store: Store,
        *,
        told: Callable[[Outage | None], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._told = told
        self.clock = clock
        self._wall = wall
        self._sleep = sleep
        self._lock = threading.Lock()
        self._outage: Outage | None = None
        self._failures = 0
        self._refused_at: float | None = None
        self._logged_at = float("-inf")

    @property
    def outage(self) -> Outage | None:
        """The outage that lasts; None while the store answers."""
        return self._outage

    def waits_for(self, error: BaseException, *, starting: bool = False) -> bool:
        """Whether a retry may help.

        `starting`: nothing has been read or written yet, so a bucket that does not exist is a mistake in the job, not
        an outage.
        """
        if isinstance(error, RightsRefused):
            with self._lock:
                self._refused_at = self.clock() if self._refused_at is None else self._refused_at
                in_time = self.clock() - self._refused_at < CREDENTIALS_TIMEOUT
            return in_time and _renewed(self._store)
        return isinstance(error, StoreUnavailable) and not (starting and isinstance(error, StoreRefused))

    def failed(self, message: str, doing: str = "training goes on and commits later") -> float:
        """Note a failed try. `doing` is what happens meanwhile. Returns the seconds until the next try."""
        with self._lock:
            now = self.clock()
            self._outage = Outage(self._outage.since if self._outage else self._wall(), message)
            self._failures += 1
            failures = self._failures
            if now - self._logged_at >= LOG_INTERVAL:
                self._logged_at = now
                _log.warning("%s", away_line(self._outage, self._wall(), doing))
        self._told(self._outage)
        return delay(FIRST_RETRY_INTERVAL, LONGEST_RETRY_INTERVAL, failures, random.random())  # noqa: S311

    def answered(self) -> None:
        """Note that the store has answered."""
        self._refused_at = None
        with self._lock:
            outage, self._outage = self._outage, None
            self._failures, self._logged_at = 0, float("-inf")
        if outage is not None:
            _log.warning("%s", back_line(self._wall() - outage.since))
            self._told(None)

    def until_answered(self, work: Callable[[], T], *, starting: bool = False) -> T:
        """What `work` returns, repeated until the store answers. Raises what no retry helps against."""
        while True:
            try:
                value = work()
            except StoreUnavailable as error:
                if not self.waits_for(error, starting=starting):
                    raise
                self._sleep(self.failed(str(error), "the program waits for it"))
            else:
                self.answered()
                return value


def _renewed(store: Store) -> bool:
    try:
        return renew(store)
    except StoreUnavailable:
        return True  # the file or the login is being replaced at this moment
