"""A cluster has one run at a time, and no process of a run remains: real processes, without Pulumi."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from spotladder.errors import EnvironmentFailure
from spotladder.local.reaper import alive
from spotladder_infra.rollout import hold as module
from spotladder_infra.rollout.hold import hold
from tests.waiting import eventually

RUN = """\
import os, pathlib, subprocess, sys
from spotladder_infra.rollout.hold import hold
with hold("east", pathlib.Path(sys.argv[1])) as run:
    waits = [sys.executable, "-c", "import signal; signal.pause()"]
    engine = subprocess.Popen(waits, env={**os.environ, **run.environment}, start_new_session=True)
    print(engine.pid, run.folder, flush=True)
    sys.stdin.readline()
"""


@dataclass
class StartedRun:
    """A run in a separate process. `engine` is a process that it has started in another session."""

    process: subprocess.Popen[str]
    engine: int
    folder: Path


@contextmanager
def started(lock: Path) -> Iterator[StartedRun]:
    command = [sys.executable, "-c", RUN, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        engine, _, folder = process.stdout.readline().strip().partition(" ")
        try:
            yield StartedRun(process, int(engine), Path(folder))
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_of_a_killed_run_remains(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path / "east.lock") as run:
        assert run.folder.is_dir()
        os.kill(run.process.pid, number)
        run.process.wait()
        with hold("east", tmp_path / "east.lock"):
            assert not alive(run.engine), "the lock is free only when the processes of the killed run are gone"
            assert not run.folder.exists()


def test_a_cluster_has_one_run(tmp_path: Path) -> None:
    lock = tmp_path / "east.lock"
    expected = f"cluster east: process {os.getpid()} on this machine is working on it"
    with hold("east", lock), pytest.raises(EnvironmentFailure, match=expected), hold("east", lock):
        pass
    with hold("west", tmp_path / "west.lock"), hold("east", lock):
        pass


def test_processes_that_do_not_end_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tmp_path / "east.lock"
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setattr(module, "EXIT_TIMEOUT", 0.1)
    with hold("east", lock):
        lock.write_text(str(gone.pid))
        expected = f"process {gone.pid} was killed and processes that it started still run"
        with pytest.raises(EnvironmentFailure, match=expected), hold("east", lock):
            pass


def test_an_interrupted_run_lets_its_processes_finish(tmp_path: Path) -> None:
    finished = tmp_path / "finished"
    begun = tmp_path / "begun"
    program = (
        "import pathlib, signal, sys\n"
        "signal.signal(signal.SIGINT, lambda *_: (pathlib.Path(sys.argv[2]).touch(), sys.exit()))\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        "signal.pause()\n"
    )
    started: list[subprocess.Popen[bytes]] = []

    def interrupted() -> None:
        with hold("east", tmp_path / "east.lock") as run:
            command = [sys.executable, "-c", program, str(begun), str(finished)]
            started.append(subprocess.Popen(command, env={**os.environ, **run.environment}))
            assert eventually(begun.exists)
            started[0].send_signal(signal.SIGINT)  # a terminal sends it to both
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started[0].wait() == 0
    assert finished.exists()
