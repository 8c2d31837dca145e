"""Folders of runs whose runner and watchdog are dead are swept with their processes; others are kept."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from spotladder.local import scratch as module
from spotladder.local.reaper import Reaper, end_all, members
from spotladder.local.scratch import Scratch, new_scratch, sweep

RUNNER = """\
import os, signal, subprocess, sys
from spotladder.local.reaper import MARK, Reaper
from spotladder.local.scratch import new_scratch
mark = sys.argv[1]
scratch = new_scratch(mark)
reaper = Reaper(mark, scratch.path, scratch.lock)
node = subprocess.Popen(["sh", "-c", f"env -u {MARK} sleep 600 & sleep 600"],
                        env={**os.environ, MARK: mark}, start_new_session=True)
print(scratch.path, reaper._watchdog.pid, node.pid, flush=True)
signal.pause()
"""


@pytest.fixture
def mine() -> Iterator[Scratch]:
    mine = new_scratch(uuid.uuid4().hex)
    yield mine
    mine.close()
    shutil.rmtree(mine.path)


@pytest.fixture
def mark() -> Iterator[str]:
    mark = uuid.uuid4().hex
    yield mark
    assert end_all(mark, set()) == []


def test_the_processes_and_folder_of_a_killed_runner_and_watchdog_are_swept(mine: Scratch, mark: str) -> None:
    with subprocess.Popen([sys.executable, "-c", RUNNER, mark], stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        where, watchdog, node = runner.stdout.readline().split()
        folder, session = Path(where), int(node)
        assert folder not in sweep(mine.path), "its runner is alive"
        assert members(mark, {session})
        os.kill(runner.pid, signal.SIGSTOP)  # so that it cannot start another watchdog
        os.kill(int(watchdog), signal.SIGKILL)
        os.kill(runner.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while folder.exists():  # a run that starts on this machine at this moment may sweep it first
        sweep(mine.path)
        assert time.monotonic() < deadline, "the lock of a dead process is released"
        time.sleep(0.02)
    assert members(mark, {session}) == [], "processes without the mark are found by their session"
    assert mine.path.exists()


def test_a_run_with_a_live_watchdog_is_not_swept(mine: Scratch, mark: str) -> None:
    other = new_scratch(mark)
    reaper = Reaper(mark, other.path, other.lock)
    other.close()  # as when the runner is killed
    assert other.path not in sweep(mine.path)
    assert other.path.exists()
    reaper.close()
    assert not other.path.exists()


@pytest.mark.parametrize("owner", [None, "not a mark", ""])
def test_a_folder_without_a_valid_mark_is_not_swept(mine: Scratch, owner: str | None) -> None:
    other = mine.path.parent / f"{module.PREFIX}{uuid.uuid4().hex}"
    other.mkdir()
    try:
        if owner is not None:
            (other / "owner").write_text(owner)
        assert other not in sweep(mine.path)
        assert other.exists()
    finally:
        shutil.rmtree(other)


def test_the_folder_of_another_user_is_not_swept(mine: Scratch, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = new_scratch(mark)
    other.close()
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    assert sweep(mine.path) == []
    monkeypatch.undo()
    assert other.path in sweep(mine.path)


def test_temporary_files_are_in_tmpdir_and_deleted_with_the_scratch_folder(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    scratch = new_scratch(mark)
    temporary = (scratch.path / "tmp").resolve()
    assert temporary.parent == tmp_path
    (temporary / "a1").mkdir()
    Reaper(mark, scratch.path, scratch.lock).close()
    scratch.close()
    assert not scratch.path.exists()
    assert not temporary.exists()
