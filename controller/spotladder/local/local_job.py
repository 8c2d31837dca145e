"""What the local backend runs: the program of a job, its tiers, and the state of its commit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from spotladder.core.model import Progress


@dataclass(frozen=True, slots=True)
class LocalTier:
    """A tier on this machine: its pool and the tier's environment variables of the program."""

    pool: str
    entrypoint: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LocalJob:
    """The program to run. `environment` has the variables of the in-job library; `cwd` is the folder of the job's file;
    `cache_size` is the size in bytes of each node's cache for checkpoints, None for no cache. `min_workers` is the
    number of workers with which an elastic program can train, None for all."""

    name: str
    namespace: str
    workers: int
    cwd: Path
    tiers: Mapping[str, LocalTier]
    environment: Mapping[str, str]
    cache_size: int | None = None
    min_workers: int | None = None


class CommitLogSeen(Protocol):
    """The state of the commit log, without a request to the bucket."""

    @property
    def progress(self) -> Progress:
        """The newest commit and start, as of the last poll."""

    @property
    def gone(self) -> str:
        """Commits that have disappeared from the log; "" if none has."""

    def poll_now(self) -> None:
        """Poll soon: a process has just ended."""

    @property
    def current(self) -> bool:
        """Whether the log has been polled since the last call of `poll_now`."""

    def end(self, *, succeeded: bool, message: str) -> None:
        """Record the job's outcome in the commit log."""
