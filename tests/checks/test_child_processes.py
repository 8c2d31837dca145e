"""Interrupted tests leave no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder.local.reaper import alive
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
TEST = """
import subprocess
import pytest

@pytest.mark.ray
def test_that_waits():
    subprocess.run(["sh", "-c", "sleep 600 & echo $! > PIDS; wait"])
"""
"""Starts a process as `make demo` starts `spotladder run`: a test that is interrupted kills only `make`."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_processes_of_tests_end_with_the_tests(tmp_path: Path, number: signal.Signals) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "test_waits.py").write_text(TEST.replace("PIDS", str(pids)))
    command = [sys.executable, "-m", "pytest", "-p", "tests.child_processes", "-p", "xdist", "-n", "1"]
    path = os.pathsep.join([str(ROOT), *sys.path])
    with subprocess.Popen(
        [*command, "test_waits.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as tests:
        assert eventually(lambda: pids.exists() and pids.read_text().endswith("\n"))
        os.kill(tests.pid, number)
    pid = int(pids.read_text())
    assert eventually(lambda: not alive(pid))
