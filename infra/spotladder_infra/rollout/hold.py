"""One run per cluster on this machine, and no process of a run outlives it.

A run and its watchdog lock the same file. When the run ends, even by SIGKILL, the watchdog kills Pulumi's engine, its
providers, helm and kubectl, and removes the working folder. Only then is the lock free, so a run never meets processes
of a killed one.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from spotladder.errors import EnvironmentFailure
from spotladder.local.reaper import EXIT_TIMEOUT, alive, marked
from spotladder_infra.watchdog import WatchedRun, watched

INTERRUPT_TIMEOUT = 120.0
"""Seconds that the processes of an interrupted run may take to exit by themselves. A second interrupt ends the wait."""

POLL_INTERVAL = 0.1


@contextmanager
def hold(cluster: str, path: Path) -> Iterator[WatchedRun]:
    """Holds the cluster's lock file at `path` while the block runs. No process of the run is left afterwards.

    Raises:
        EnvironmentFailure: Another run on this machine holds it.
    """
    with path.open("a+", encoding="ascii") as lock:
        _acquire(cluster, lock)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        with watched(lock.fileno()) as run:
            try:
                yield run
            except KeyboardInterrupt:
                _wait(lambda: not marked(run.mark), INTERRUPT_TIMEOUT)
                raise


def _acquire(cluster: str, lock: IO[str]) -> None:
    """Locks the file. Waits while the watchdog of a killed run still has it."""
    holder = ""

    def acquired() -> bool:
        nonlocal holder
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            if holder.isdigit() and not alive(int(holder)):
                return False
            raise EnvironmentFailure(
                f"cluster {cluster}: process {holder} on this machine is working on it: wait for it"
            ) from None
        return True

    if not _wait(acquired, 2 * EXIT_TIMEOUT):
        raise EnvironmentFailure(
            f"cluster {cluster}: process {holder} was killed and processes that it started still run: end them"
        )


def _wait(met: Callable[[], bool], timeout: float) -> bool:
    """Polls the condition for `timeout` seconds. Returns whether it was met."""
    deadline = time.monotonic() + timeout
    while not met():
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_INTERVAL)
    return True
