"""What the local backend runs: the program of a job and its tiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


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
