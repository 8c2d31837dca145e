"""The controller's view of a commit log: in a folder, and at an endpoint that an administrator has listed."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.checkpoints import heartbeat, outputs, standby
from spotladder.checkpoints.entry_log import ForeignLog
from spotladder.checkpoints.heartbeat import StoredHeartbeat
from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.open_store import open_store
from spotladder.checkpoints.outputs import Output
from spotladder.checkpoints.store import RightsRefused, Store
from spotladder.checkpoints.store_check import StoreUnsafe
from spotladder.core.model import Progress
from spotladder.operator.storage.bucket_log import BucketLog
from spotladder.operator.storage.commit_logs import EndOfLog, LogAddress
from tests.checkpoints.memory_store import MemoryStore
from tests.checkpoints.unsafe_stores import Ignores


class ProgramLog:
    """The log of the job digits, as its program writes it and as the controller reads it."""

    def __init__(self, folder: Path) -> None:
        self.uri = folder.as_uri()
        self.program = CommitLog(open_store(self.uri), "digits", namespace="team-a", uid="u")
        self.store = self.program.store
        self.controller = self.read_as("team-a")

    def read_as(self, namespace: str) -> BucketLog:
        return BucketLog(LogAddress("digits", namespace, "u", self.uri))


@pytest.fixture
def log(tmp_path: Path) -> ProgramLog:
    return ProgramLog(tmp_path)


def test_the_progress_and_the_heartbeat_are_those_of_the_newest_start(log: ProgramLog) -> None:
    assert log.controller.progress() == Progress()
    assert log.controller.heartbeat() is None
    log.program.start(1, "spot-a")
    start = log.program.start(2, "spot-b", workers=3).start
    heartbeat.write(log.store, 1, StoredHeartbeat(start.seq - 1, 30, 100))
    assert log.controller.heartbeat() is None, "the start is not read yet"
    found = log.controller.progress()
    assert (found.attempt, found.workers, found.step) == (2, 3, 0)
    assert log.controller.heartbeat() is None
    heartbeat.write(log.store, 2, StoredHeartbeat(start.seq, 40, 100))
    assert log.controller.heartbeat() == StoredHeartbeat(start.seq, 40, 100)


def test_a_standby_attempt_is_held_once_its_program_has_said_so(log: ProgramLog) -> None:
    standby.report_held(log.store, 3)
    assert [log.controller.is_held(number) for number in (2, 3)] == [False, True]


def test_the_outcome_is_the_last_entry_of_the_log(log: ProgramLog) -> None:
    log.program.start(1, "spot-a")
    assert log.controller.end("Failed", 1, "ApplicationFailed", 3) == EndOfLog("", Progress(attempt=1, start=0))
    end = log.program.read().end
    assert end is not None
    assert (end.attempt, end.outcome, end.message) == (1, "Failed", "ApplicationFailed")


def test_the_output_of_a_program_is_kept_beside_its_log_only(log: ProgramLog) -> None:
    log.program.start(1, "spot-a")
    output = Output(1, 0, "driver")
    log.controller.keep({output: "boom\n"})
    assert outputs.read(outputs.of_job(log.store, "u"), [output]) == ["boom\n"]
    with pytest.raises(ForeignLog):
        log.read_as("team-b").keep({output: "other\n"})
    assert outputs.read(outputs.of_job(log.store, "u"), [output]) == ["boom\n"]


class Bucket(MemoryStore):
    """A store that is the same from every machine."""

    endpoint = "s3: the endpoint"


class UnsafeBucket(Bucket, Ignores): ...


class ReadOnlyBucket(Bucket):
    def put_if_absent(self, key: str, data: bytes) -> bool:
        raise RightsRefused("access denied")


def bucket_log(monkeypatch: pytest.MonkeyPatch, store: Store) -> BucketLog:
    monkeypatch.setattr("spotladder.operator.storage.bucket_log.open_store", lambda *_, **__: store)
    return BucketLog(LogAddress("digits", "team-a", "u", "s3://bucket/team-a"))


def test_the_bucket_of_a_new_job_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Bucket()
    for _ in range(2):
        assert bucket_log(monkeypatch, store).progress() == Progress()
    assert len(store.objects) == 1, "the marker of the check, which the program finds"
    with pytest.raises(StoreUnsafe, match="could overwrite its successor's checkpoints"):
        bucket_log(monkeypatch, UnsafeBucket()).progress()


def test_a_bucket_that_the_controller_may_only_read_is_left_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bucket_log(monkeypatch, ReadOnlyBucket()).progress() == Progress()
