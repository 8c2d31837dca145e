"""Waiting for a job through a restart or an overload of the API server."""

from __future__ import annotations

import time
from types import TracebackType

from spotladder.clusters.errors import ClusterUnreachable, Throttled
from spotladder.errors import SpotladderError
from spotladder.jobs.remarks import remark

OUTAGE_TIMEOUT = 600.0
"""Seconds without an API server after which waiting for the end of a job raises the error."""


class OutageTolerance:
    """Use as `with tolerance:` around each request. The first error of an outage is printed; the error is raised when
    the outage has lasted for `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.error: SpotladderError | None = None
        """The error of the last request; None if the API server answered it."""
        self._seconds = seconds
        self._since = 0.0
        self._reported = False

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if not isinstance(error, ClusterUnreachable | Throttled):
            self.error = None
            return False
        now = time.monotonic()
        if self.error is None:
            self._since = now
        self.error = error
        if now - self._since > self._seconds:
            return False
        if not self._reported:
            self._reported = True
            remark(f"{error}: retrying")
        return True
