"""The API of the in-job library with one process: commits, notices, restarts, errors."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy
import pytest

from spotladder.checkpoints import entries, garbage
from spotladder.checkpoints.disk import DiskStore
from spotladder.checkpoints.progress import progress
from spotladder.checkpoints.store import RightsRefused, StoreRefused
from spotladder.errors import CheckpointCorrupt, Fenced
from spotladder.train.interruption import Interrupted
from spotladder.train.rank_files import upload_files
from tests.train.builders import ManualClock, job, log_of, newest_of, train

pytestmark = pytest.mark.usefixtures("no_waiting")


def committed(folder: Path) -> list[tuple[int, int]]:
    """(attempt, step) of every valid commit."""
    return [(commit.attempt, commit.step) for commit in log_of(folder).commits()]


def test_every_interval_and_the_last_step_are_committed(tmp_path: Path) -> None:
    assert train(job(tmp_path), 25) == [10, 20, 25]
    assert committed(tmp_path) == [(1, 10), (1, 20), (1, 25)]


def test_a_commit_contains_how_long_it_took(tmp_path: Path) -> None:
    """The time from the beginning of the block; its part in the background is measured by a real clock."""
    clock = ManualClock()
    trained = job(tmp_path, clock=clock)
    with trained.commit(10) as folder:
        (folder / "weights").write_text("1")
        clock.now += 90
    trained.flush()
    newest = newest_of(tmp_path)
    assert 90 <= newest.seconds < 180
    assert progress(log_of(tmp_path)).commit_seconds == newest.seconds


def test_a_later_attempt_resumes_from_the_newest_commit(tmp_path: Path) -> None:
    first = job(tmp_path)

    def die(step: int) -> None:
        if step == 17:
            raise KeyError("a bug of the program")

    with pytest.raises(KeyError, match="a bug of the program"):
        train(first, 30, on_step=die)
    first.flush()
    done: list[int] = []
    second = job(tmp_path, attempt=2)
    assert train(second, 30, on_step=done.append) == [20, 30]
    assert list(second._member.heartbeat.reached) == ["imported", "joined", "restored", "stepped"]
    assert "restored" not in first._member.heartbeat.reached
    assert done == list(range(11, 31))
    with job(tmp_path, attempt=3).resume() as found:
        assert found is not None
        assert (found.step, found.total, found.attempt) == (30, 30, 2)
        assert (found.path / "sum").read_text() == str(sum(range(1, 31)))


@pytest.mark.parametrize(("start", "total", "steps"), [(0, 3, [1, 2, 3]), (3, 6, [4, 5, 6]), (6, 6, []), (0, 0, [])])
def test_step_numbers_count_finished_steps(tmp_path: Path, start: int, total: int, steps: list[int]) -> None:
    assert list(job(tmp_path).steps(start, total)) == steps


@pytest.mark.parametrize(("start", "total"), [(-1, 3), (4, 3)])
def test_invalid_step_ranges(tmp_path: Path, start: int, total: int) -> None:
    with pytest.raises(ValueError, match="0 ≤ start ≤ total"):
        list(job(tmp_path).steps(start, total))


def test_a_step_may_be_an_integer_of_any_library(tmp_path: Path) -> None:
    one, whole = job(tmp_path, heartbeat=tmp_path / "heartbeat.json"), cast("Any", numpy.int64)
    for step in one.steps(whole(0), whole(10)):
        if one.should_commit(whole(step)):
            with one.commit(whole(step)):
                pass
    assert committed(tmp_path) == [(1, 10)]
    with pytest.raises(TypeError, match="'float' object cannot be interpreted as an integer"):
        one.should_commit(cast("Any", 11.5))


def test_a_commit_without_files_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    one = job(tmp_path)
    with one.commit(10):
        (tmp_path / "weights").write_text("beside the folder")
    with one.commit(20) as folder:
        (folder / "weights").write_text("in the folder")
    one.flush()
    assert "the commit of step 10 has no files: write the state into the folder" in caplog.text
    assert "the commit of step 20" not in caplog.text


def test_should_commit_gives_the_same_answer_for_the_same_step(tmp_path: Path) -> None:
    asked = job(tmp_path)
    assert [asked.should_commit(step) for step in (9, 10, 10, 11, 11)] == [False, True, True, False, False]


def test_a_step_that_is_committed_again_leaves_the_files_of_the_first_commit(tmp_path: Path) -> None:
    """As in a second loop of the program, or after it has gone back to a commit."""
    twice = job(tmp_path)
    for text in ("first", "second"):
        for step in twice.steps(0, 10):
            if twice.should_commit(step):
                with twice.commit(step) as folder:
                    (folder / "text").write_text(text)
    log = log_of(tmp_path)
    for commit in log.commits():
        log.verify(commit)
    assert committed(tmp_path) == [(1, 10), (1, 10)]


def test_an_interval_in_seconds_counts_from_the_last_commit(tmp_path: Path) -> None:
    clock = ManualClock()
    timed = job(tmp_path, clock=clock, interval="30s")
    due = []
    for step in timed.steps(0, 10):
        clock.now += 12
        if timed.should_commit(step):
            due.append(step)
            with timed.commit(step):
                pass
            timed.flush()
    assert due == [3, 6, 9, 10]


def test_a_slow_upload_delays_the_next_timed_commit_but_not_the_training(tmp_path: Path) -> None:
    clock = ManualClock()
    timed = job(tmp_path, clock=clock, interval="30s")
    with held_uploads() as release:
        with timed.commit(1) as folder:
            (folder / "a").write_text("a")
        clock.now += 100
        assert not timed.should_commit(2)
        release.set()
        timed.flush()
        assert timed.should_commit(3)


def test_an_exception_in_the_commit_block_is_raised_and_commits_nothing(tmp_path: Path) -> None:
    one = job(tmp_path)
    with pytest.raises(ZeroDivisionError), one.commit(1) as folder:
        (folder / "half").write_text(str(1 / 0))
    assert not folder.exists()
    with one.commit(2):
        pass
    one.flush()
    assert committed(tmp_path) == [(1, 2)]


@pytest.mark.parametrize("step", [3, 5])
def test_a_commit_needs_a_higher_step(tmp_path: Path, step: int) -> None:
    one = job(tmp_path)
    with one.commit(5):
        pass
    with pytest.raises(ValueError, match="expected a higher step"), one.commit(step):
        pass


def test_a_commit_that_is_not_accepted_leaves_no_files(tmp_path: Path) -> None:
    one = job(tmp_path)
    with pytest.raises(CheckpointCorrupt), one.commit(1) as folder:
        one._member.commits._error = CheckpointCorrupt("the previous commit failed meanwhile")
    assert not folder.exists()


def test_a_log_that_is_too_large_for_a_snapshot_does_not_stop_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(garbage, "COMPACT_AFTER", 0)
    monkeypatch.setattr(entries, "LARGEST_ENTRY", 900)
    assert train(job(tmp_path), 40) == [10, 20, 30, 40]
    assert committed(tmp_path) == [(1, 20), (1, 30), (1, 40)]
    assert "old checkpoints were not deleted: log entry" in caplog.text


def test_a_disk_that_is_too_small_for_the_commit_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(job(tmp_path), 10, flush=True)
    errors = [StoreRefused("No space left on device on this machine"), AssertionError("waits for space")]

    def refuse(*_: object) -> None:
        raise errors.pop(0)

    monkeypatch.setattr(DiskStore, "get_file", refuse)
    with pytest.raises(StoreRefused, match="No space left"), job(tmp_path, attempt=2).resume():
        pass


def test_a_failed_upload_is_raised_by_the_next_call_once(tmp_path: Path) -> None:
    one = job(tmp_path)
    with one.commit(1) as folder:
        (folder / "a").write_text("a")
        for name in ("put_file", "take_file"):
            setattr(one._member.log.store, name, refuse)
    while one._member.commits.busy:
        pass
    with pytest.raises(RightsRefused, match="access denied"):
        one.should_commit(2)
    assert not one.should_commit(3)


def test_a_skipped_commit_is_recorded_with_the_next_commit(tmp_path: Path) -> None:
    train(job(tmp_path), 20)
    newest = newest_of(tmp_path)
    file = tmp_path / "digits" / newest.path / "sum"
    file.unlink()
    file.mkdir()  # A folder in place of a file counts as a missing file.
    train(job(tmp_path, attempt=2), 30)
    first, *later = [commit for commit in log_of(tmp_path).commits() if commit.attempt == 2]
    (skipped,) = first.skipped
    assert (skipped.step, "is missing" in skipped.why) == (20, True)
    assert not any(commit.skipped for commit in later)
    assert progress(log_of(tmp_path)).skipped == str(skipped)
    train(job(tmp_path, attempt=3), 40)
    assert progress(log_of(tmp_path)).skipped == ""


def test_the_program_does_not_start_anew_when_no_commit_verifies(tmp_path: Path) -> None:
    train(job(tmp_path), 10)
    for file in (tmp_path / "digits").rglob("sum"):
        file.unlink()
    with pytest.raises(CheckpointCorrupt), job(tmp_path, attempt=2).resume():
        pass


# --- notices --------------------------------------------------------------------------------------------------------


def write_notice(file: Path, **fields: object) -> None:
    draft = file.with_suffix(".draft")
    draft.write_text(json.dumps({"kind": "drain", "deadline": 99.0, "reason": "EvictionNotice", **fields}))
    draft.replace(file)


def test_a_notice_commits_and_ends_the_loop_with_75(tmp_path: Path) -> None:
    file = tmp_path / "notice"
    stopped = job(tmp_path, notice=file)
    with pytest.raises(Interrupted) as interrupted:
        train(stopped, 30, on_step=lambda step: write_notice(file) if step == 4 else None)
    assert interrupted.value.code == 75
    assert interrupted.value.step == 4
    assert committed(tmp_path) == [(1, 4)]


def test_a_notice_at_the_last_step_does_not_interrupt(tmp_path: Path) -> None:
    file = tmp_path / "notice"
    assert train(job(tmp_path, notice=file), 30, on_step=lambda step: write_notice(file) if step == 30 else None) == [
        10,
        20,
        30,
    ]


def test_the_exit_waits_for_the_commit(tmp_path: Path) -> None:
    file = tmp_path / "notice"
    stopped = job(tmp_path, notice=file)
    with held_uploads() as release:
        write_notice(file)
        threading.Timer(0.1, release.set).start()
        with pytest.raises(Interrupted):
            train(stopped, 30)
        assert release.is_set()
    assert committed(tmp_path) == [(1, 1)]


def test_sigterm_is_a_notice_during_training_and_its_handler_is_restored(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(Interrupted) as interrupted:
        train(job(tmp_path), 30, on_step=lambda step: os.kill(os.getpid(), signal.SIGTERM) if step == 12 else None)
    assert interrupted.value.step == 12
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_second_sigterm_calls_the_programs_handler(tmp_path: Path) -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        stopped = job(tmp_path)
        stopped.should_commit(1)
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
        stopped.close()
    finally:
        signal.signal(signal.SIGTERM, before)


# --- fencing ----------------------------------------------------------------------------------------------------------


def test_a_replaced_program_exits_at_once_with_76(tmp_path: Path) -> None:
    left: list[int] = []
    old = job(tmp_path, left=left)
    job(tmp_path, attempt=2)
    with old.commit(10):
        pass
    with pytest.raises(Fenced):
        old.flush()
    assert left == [76]
    assert committed(tmp_path) == []


# --- heartbeats -----------------------------------------------------------------------------------------------------


def test_the_heartbeat_contains_the_progress(tmp_path: Path) -> None:
    file = tmp_path / "heartbeat"
    seen: list[dict[str, float]] = []
    beating = job(tmp_path, heartbeat=file)
    train(beating, 20, on_step=lambda _: seen.append(json.loads(file.read_text())))
    assert [(beat["step"], beat["total"]) for beat in (seen[0], seen[10])] == [(0, 20), (10, 20)]
    last = json.loads(file.read_text())
    assert (last["step"], last["total"], last["sum"]) == (20, 20, 210)


@contextmanager
def held_uploads() -> Iterator[threading.Event]:
    """Hold the uploads of this process until the event is set."""
    release = threading.Event()

    def held(*args: Any, **kwargs: Any) -> dict[str, Any]:
        release.wait(600)
        return upload_files(*args, **kwargs)

    with patch("spotladder.train.commits.upload_files", held):
        try:
            yield release
        finally:
            release.set()


def refuse(*_: object) -> None:
    raise RightsRefused("access denied")


def test_the_files_to_read_are_those_of_the_log_and_the_files_of_the_program_are_copies(tmp_path: Path) -> None:
    train(job(tmp_path), 10)
    stored = [path for path in (tmp_path / "digits" / "attempts").rglob("*") if path.is_file()]
    with job(tmp_path, attempt=2).resume() as found:
        assert found
        read = [path.resolve() for path in found.to_read().iterdir()]
        assert sorted(read) == sorted(path.resolve() for path in stored)
        for path in found.path.iterdir():
            assert path.read_bytes() == (found.to_read() / path.name).read_bytes()
            path.write_text("changed by the program")
    again = log_of(tmp_path).newest()
    assert again
    log_of(tmp_path).verify(again)
