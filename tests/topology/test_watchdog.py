"""The programs of an interrupted run: real processes, without Pulumi."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder_infra.watchdog import watched_until_finished
from tests.waiting import eventually


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
        with watched_until_finished() as run:
            command = [sys.executable, "-c", program, str(begun), str(finished)]
            started.append(subprocess.Popen(command, env={**os.environ, **run.environment}))
            assert eventually(begun.exists)
            started[0].send_signal(signal.SIGINT)  # a terminal sends it to both
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert started[0].wait() == 0
    assert finished.exists()
