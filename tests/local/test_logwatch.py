"""The background reader of the commit log: new commits once, errors reported, a last read at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.checkpoints.log import CommitLog
from spotladder.checkpoints.store import RightsRefused
from spotladder.errors import StoreUnavailable
from spotladder.local.logwatch import LogWatch
from tests.checkpoints.builders import commit_folder
from tests.checkpoints.memory_store import MemoryStore
from tests.waiting import eventually


class WrittenLog:
    """A commit log in a memory store, with one writer."""

    def __init__(self, folder: Path) -> None:
        self.store = MemoryStore()
        self.log = CommitLog(self.store, job="digits")
        self.writer = self.log.start(1, "spot-a")
        self.files = folder
        (folder / "weights").write_text("w")

    def commit(self, step: int) -> None:
        commit_folder(self.writer, step, self.files, total=100, metrics={"loss": 0.5})


@pytest.fixture
def bucket(tmp_path: Path) -> WrittenLog:
    return WrittenLog(tmp_path)


@pytest.fixture
def watch(bucket: WrittenLog) -> Iterator[LogWatch]:
    bucket.commit(10)
    watch = LogWatch(bucket.log, keep=2, spacing=0.01)
    watch.start()
    yield watch
    watch.close()


def test_each_new_commit_is_returned_once(watch: LogWatch, bucket: WrittenLog) -> None:
    bucket.commit(20)
    bucket.commit(30)
    assert eventually(lambda: watch.progress.step == 30)
    assert [commit.step for commit in watch.take_new()] == [20, 30]
    assert watch.take_new() == []


def test_a_bucket_outage_is_reported_once_and_keeps_the_progress(
    watch: LogWatch, bucket: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow = CommitLog.follow

    def away(*_: object) -> object:
        raise StoreUnavailable("the bucket does not answer")

    monkeypatch.setattr(CommitLog, "follow", away)
    errors: list[str] = []

    def has_error() -> bool:
        error = watch.take_error()
        errors.extend([error] if error else [])
        return bool(errors)

    assert eventually(has_error)
    time.sleep(0.1)
    has_error()
    assert errors == ["the bucket does not answer"]
    assert watch.progress.step == 10
    monkeypatch.setattr(CommitLog, "follow", follow)
    bucket.commit(20)
    assert eventually(lambda: watch.progress.step == 20)


def test_credentials_that_are_replaced_in_place_are_read_again(
    watch: LogWatch, bucket: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: after a key was replaced in its file, the program committed and the runner saw no commits."""
    listing, replaced = bucket.store.list, threading.Event()

    def refused(*_: object, **__: object) -> object:
        raise RightsRefused("access denied")

    def renewed() -> bool:
        if replaced.is_set():
            monkeypatch.setattr(bucket.store, "list", listing)
        return True

    monkeypatch.setattr(bucket.store, "renew", renewed, raising=False)
    monkeypatch.setattr(bucket.store, "list", refused)
    assert eventually(lambda: watch.take_error() is not None)
    assert watch.progress.step == 10
    replaced.set()
    assert eventually(lambda: bucket.store.list == listing)
    bucket.commit(20)
    assert eventually(lambda: watch.progress.step == 20)


def test_the_end_of_the_job_is_recorded_once(watch: LogWatch, bucket: WrittenLog) -> None:
    watch.end(succeeded=True, message="Completed")
    watch.end(succeeded=True, message="Completed")
    end = bucket.log.read().end
    assert end is not None
    assert (end.outcome, end.message) == ("Succeeded", "Completed")


def test_deleted_commits_are_reported_and_keep_the_known_progress(watch: LogWatch, bucket: WrittenLog) -> None:
    """For example when a network file system is unmounted during a run."""
    objects = dict(bucket.store.objects)
    bucket.store.objects.clear()
    assert eventually(lambda: bool(watch.gone))
    assert watch.progress.step == 10
    assert "step 10 was committed" in (watch.take_error() or "")
    bucket.store.objects.update(objects)
    assert eventually(lambda: not watch.gone)


def test_at_the_end_of_the_job_only_the_newest_commits_are_kept(watch: LogWatch, bucket: WrittenLog) -> None:
    """Before the end, the newest commit of each attempt is kept too. Regression: `keep: 2` left 4 GiB after success."""
    for attempt in (2, 3, 4):
        bucket.writer = bucket.log.start(attempt, "spot-a")
        bucket.commit(10 * attempt)
    watch.end(succeeded=True, message="Completed")
    assert [commit.step for commit in bucket.log.read().commits] == [30, 40]
    assert not list(bucket.store.list("attempts/0001"))


def test_the_log_is_current_after_a_requested_read_even_if_it_failed(
    watch: LogWatch, bucket: WrittenLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert watch.current
    bucket.commit(20)
    watch.poll_now()
    assert eventually(lambda: watch.current)
    assert watch.progress.step == 20

    def away(*_: object) -> object:
        raise StoreUnavailable("the bucket does not answer")

    monkeypatch.setattr(CommitLog, "follow", away)
    watch.poll_now()
    assert eventually(lambda: watch.current)
