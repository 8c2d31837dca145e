"""Waiting for a job by looking at it again and again: a server that is upgraded, or busy, does not end it."""

from __future__ import annotations

import time
from types import TracebackType

import typer

from spotladder.errors import SpotladderError


class Patience:
    """Use as `with patience:` around each look. Trouble of the cluster's own, or of the way to it, is told once, and
    raised when it has lasted for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.trouble: SpotladderError | None = None
        """What the last look ended with; None when it was answered."""
        self._seconds = seconds
        self._since = 0.0
        self._told = False

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        from spotladder.clusters.errors import ClusterUnreachable, Throttled

        if not isinstance(error, ClusterUnreachable | Throttled):
            self.trouble = None
            return False
        now = time.monotonic()
        if self.trouble is None:
            self._since = now
        self.trouble = error
        if now - self._since > self._seconds:
            return False
        if not self._told:
            self._told = True
            typer.echo(f"{error}: it is asked again", err=True)
        return True
