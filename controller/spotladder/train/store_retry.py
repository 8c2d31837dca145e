"""Retries of one rank while the store is unavailable.

A rank retries when the store does not answer. It retries refused credentials for at most `CREDENTIALS_TIMEOUT`, and
only if they can be replaced in place (a file, a role, a login). All other errors are raised at once.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from spotladder.backoff import delay
from spotladder.checkpoints.store import RightsRefused, Store, StoreRefused
from spotladder.errors import StoreUnavailable
from spotladder.output.outage import Outage, away_line, back_line

T = TypeVar("T")
_log = logging.getLogger("spotladder.train")

FIRST_RETRY_INTERVAL = 0.5
"""Seconds before the first retry. Each further interval is twice as long."""

LONGEST_RETRY_INTERVAL = 30.0
"""Maximum seconds between two retries."""

CREDENTIALS_TIMEOUT = 120.0
"""Seconds for which refused credentials are retried: the kubelet updates a mounted Secret within about 90 s."""

LOG_INTERVAL = 60.0
"""Seconds between two log lines about the same outage."""


class StoreRetry:
    """The outage of the store as one rank sees it, and the delay before the next retry. Thread-safe.

    The retry loop calls `on_change` with the outage when it begins and at every new error, and with None when the
    store answers again. `clock` is monotonic; `wall` is the time shown to users.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_change: Callable[[Outage | None], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._on_change = on_change
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
        """The current outage; None while the store answers."""
        return self._outage

    def waits_for(self, error: BaseException, *, starting: bool = False) -> bool:
        """Whether a retry may help.

        `starting` means that nothing has been read or written yet: a bucket that does not exist is then a mistake in
        the job, not an outage.
        """
        if isinstance(error, RightsRefused):
            with self._lock:
                self._refused_at = self.clock() if self._refused_at is None else self._refused_at
                in_time = self.clock() - self._refused_at < CREDENTIALS_TIMEOUT
            return in_time and _renewed(self._store)
        return isinstance(error, StoreUnavailable) and not (starting and isinstance(error, StoreRefused))

    def failed(self, message: str, doing: str = "training continues and commits later") -> float:
        """Record a failed request. `doing` is logged: what the program does meanwhile. Returns the seconds to wait."""
        with self._lock:
            now = self.clock()
            self._outage = Outage(self._outage.since if self._outage else self._wall(), message)
            self._failures += 1
            failures = self._failures
            if now - self._logged_at >= LOG_INTERVAL:
                self._logged_at = now
                _log.warning("%s", away_line(self._outage, self._wall(), doing))
        self._on_change(self._outage)
        return delay(FIRST_RETRY_INTERVAL, LONGEST_RETRY_INTERVAL, failures, random.random())  # noqa: S311

    def answered(self) -> None:
        """Record that the store has answered."""
        self._refused_at = None
        with self._lock:
            outage, self._outage = self._outage, None
            self._failures, self._logged_at = 0, float("-inf")
        if outage is not None:
            _log.warning("%s", back_line(self._wall() - outage.since))
            self._on_change(None)

    def until_answered(self, work: Callable[[], T], *, starting: bool = False) -> T:
        """Call `work` until the store answers; returns its result. Raises errors that a retry cannot fix."""
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
        return store.renew()
    except StoreUnavailable:
        return True  # The file or the login is being replaced at this moment.
