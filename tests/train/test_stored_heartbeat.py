"""Heartbeats that a program on a cluster writes to the store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from spotladder.checkpoints import heartbeat
from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.store import RightsRefused
from spotladder.errors import SpotladderError, StoreUnavailable
from spotladder.train.stored_heartbeat import WRITE_INTERVAL, HeartbeatWriter
from tests.checkpoints.memory_store import MemoryStore
from tests.train.builders import member


class Counting(MemoryStore):
    """Counts writes; `error` is the error of every write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.error: SpotladderError | None = None
        self.wrote = threading.Event()

    def put_file(self, key: str, path: Path) -> FileEntry:
        self.writes += 1
        if self.error is not None:
            raise self.error
        entry = super().put_file(key, path)
        self.wrote.set()
        return entry


NEVER = 3600.0


def test_a_hang_and_its_end_are_written_at_once() -> None:
    store = Counting()
    writer = HeartbeatWriter(store, 1, interval=NEVER)
    writer.put(StoredHeartbeat(0, 7, 100))
    for hang in ("no step for 60 s", ""):
        store.wrote.clear()
        writer.put(StoredHeartbeat(0, 7, 100, hang))
        assert store.wrote.wait(600)
        found = heartbeat.read(store, 1, 0)
        assert found is not None
        assert (found.step, found.hang) == (7, hang)
    writer.close()


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RightsRefused("the token has expired")])
def test_an_outage_neither_stops_the_training_nor_the_heartbeats(error: SpotladderError) -> None:
    store = Counting()
    writer = HeartbeatWriter(store, 1, interval=NEVER)
    writer.put(StoredHeartbeat(0, 7, 100))
    store.error = error
    writer.write()
    store.error = None
    writer.put(StoredHeartbeat(0, 8, 100))
    writer.write()
    found = heartbeat.read(store, 1, 0)
    assert found is not None
    assert found.step == 8
    assert not writer._closed
    writer.close()


@pytest.mark.parametrize(
    ("more", "stored"),
    [
        pytest.param({"notice": "/run/spotladder/notice"}, True, id="a pod of a job"),
        pytest.param({"notice": "notice", "heartbeat": "heartbeat.json"}, False, id="a run on this machine"),
        pytest.param({}, False, id="a script without a job"),
    ],
)
def test_only_programs_of_a_cluster_write_heartbeats_to_the_store(
    tmp_path: Path, more: dict[str, str], stored: bool
) -> None:
    here: dict[str, Any] = {name: str(tmp_path / value) for name, value in more.items()}
    rank = member(tmp_path / "log", **here)
    assert (rank.heartbeat.stored is not None) is stored
    rank.heartbeat.beat(5, 10)
    if (writer := rank.heartbeat.stored) is not None:
        writer.write()
        assert heartbeat.read(rank.log.store, 1, rank.started) == StoredHeartbeat(
            rank.started, 5, 10, beat=1, every=WRITE_INTERVAL, reached=rank.heartbeat.reached
        )
    rank.close()
