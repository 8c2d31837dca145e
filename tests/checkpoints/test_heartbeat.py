"""The heartbeat of an attempt in the store."""

from __future__ import annotations

import pytest

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from tests.checkpoints.memory_store import MemoryStore


def test_the_newest_heartbeat_replaces_the_one_before() -> None:
    store = MemoryStore()
    heartbeat.write(store, 1, StoredHeartbeat(0, 10, 100))
    heartbeat.write(store, 1, StoredHeartbeat(0, 20, 100, "no step for 60 s"))
    assert heartbeat.read(store, 1, 0) == StoredHeartbeat(0, 20, 100, "no step for 60 s")
    assert list(store.objects) == ["attempts/0001/heartbeat.json"]


def test_a_heartbeat_of_an_earlier_group_of_ranks_is_ignored() -> None:
    store = MemoryStore()
    heartbeat.write(store, 1, StoredHeartbeat(0, 10, 100, "no step for 60 s"))
    assert heartbeat.read(store, 1, 3) is None
    assert heartbeat.read(store, 2, 0) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"7",
        b'{"start": 0}',
        b'{"start": 0, "step": "x"}',
        b'{"start": 0, "step": -1}',
        b'{"start": 0, "step": 1e300}',
        b'{"start": 0, "step": 1, "total": -1}',
        b'{"start": 0, "step": 1, "total": 1' + b"0" * 400 + b"}",
        b"\xff",
        b"[" * 60_000,
        b" " * (1 << 20),
        b'{"start": 1e999}',
        b'{"start": 0, "step": 1, "every": 1e999}',
    ],
)
def test_an_object_that_is_no_heartbeat_is_ignored(content: bytes) -> None:
    store = MemoryStore()
    store.objects["attempts/0001/heartbeat.json"] = content
    assert heartbeat.read(store, 1, 0) is None
