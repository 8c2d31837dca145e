"""The folder with the stored state of a job."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from spotladder.core.model import Attempt, JobState, Stage
from spotladder.errors import EnvironmentFailure
from spotladder.local.state import AlreadyRunning, JobFolder, RunIdentity

STATE = JobState(stage=Stage.RUNNING, attempt=Attempt(3, "spot-a", 1.0), last_number=3, tier="spot-a")
RUN = RunIdentity(began=12.5, python="3.11", ray="2.58.1", uri="s3://b/p", mark="m")


@pytest.fixture
def folder(tmp_path: Path) -> JobFolder:
    return JobFolder(tmp_path, "team-a", "digits")


def test_a_job_folder_has_one_owner_at_a_time(folder: JobFolder) -> None:
    other = JobFolder(folder.path.parent.parent, "team-a", "digits")
    with folder.owned(), pytest.raises(AlreadyRunning, match=rf"process {os.getpid()} .*Ctrl-C"), other.owned():
        pass
    with folder.owned():
        pass


@pytest.mark.parametrize("text", ["", "{", '{"version": 99}', "[]", '{"version": 1, "stage": "Dreaming"}'])
def test_the_error_for_an_invalid_state_names_the_file_and_keeps_it(folder: JobFolder, text: str) -> None:
    with folder.owned():
        (folder.path / "state.json").write_text(text)
        with pytest.raises(EnvironmentFailure, match=r"state\.json.*--continue"):
            folder.load()
    assert (folder.path / "state.json").read_text() == text


@pytest.mark.parametrize("text", ["", "[]", '{"began": 1}', '{"surprise": 1}'])
def test_the_error_for_an_invalid_run_file_names_the_file(folder: JobFolder, text: str) -> None:
    with folder.owned():
        (folder.path / "run.json").write_text(text)
        with pytest.raises(EnvironmentFailure, match=r"run\.json.*--continue"):
            folder.load_run()


def test_a_full_disk_is_reported_and_the_last_state_is_kept(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with folder.owned():
        folder.save(JobState())
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(EnvironmentFailure, match=r"No space left.*free space.*--continue"):
            folder.save(STATE)
    assert folder.load() == JobState()
    assert sorted(path.name for path in folder.path.iterdir()) == ["lock", "state.json"]


def test_a_file_system_without_locks_is_reported(folder: JobFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_locks(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with pytest.raises(EnvironmentFailure, match=r"digits: cannot lock it: No locks.*--state-dir"), folder.owned():
        pass
    assert folder.owner() is None


def test_clear_deletes_the_files_of_the_run_and_no_others(folder: JobFolder) -> None:
    with folder.owned():
        folder.save(STATE)
        folder.save_run(RUN)
        (folder.path / "attempts" / "0001").mkdir(parents=True)
        (folder.path / "mine.txt").write_text("the user's")
        folder.clear()
        folder.clear()
    assert sorted(path.name for path in folder.path.iterdir()) == ["lock", "mine.txt"]


def test_reading_the_owner_does_not_prevent_a_runner_from_starting(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path, "default", "digits")
    assert folder.owner() is None
    with folder.owned():
        assert folder.owner() == os.getpid()
    assert folder.owner() is None
    looking = os.open(folder.path / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    threading.Timer(0.06, os.close, [looking]).start()
    with folder.owned():
        assert folder.owner() == os.getpid()
