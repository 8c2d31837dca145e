"""Fixtures: an empty memory store, and the commit log of one job in it."""

from __future__ import annotations

import pytest

from spotladder.checkpoints.log import CommitLog
from tests.checkpoints.builders import a_log
from tests.checkpoints.memory_store import MemoryStore


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def log(store: MemoryStore) -> CommitLog:
    return a_log(store)
