"""A job trains with this version of the library, with a later one, and with this one again, on one commit log."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from spotladder.checkpoints.entries import Commit
from spotladder.core.contract import ExitCode
from tests.e2e.world import PROGRAMS, chain
from tests.released import later
from tests.train.builders import log_of, newest_of, variables
from tests.waiting import until


class Attempts:
    """The attempts of one job, as processes of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, version: Mapping[str, str]) -> Commit:
        """Start the next attempt with this version of the library, and wait for a commit of it, which is returned. The
        last attempt still trains meanwhile."""
        attempt = len(self.processes) + 1
        own = variables(self.folder, attempt=attempt, interval="5steps")
        command = [sys.executable, str(PROGRAMS / "plain.py"), "--steps", "1000000", "--pace", "0.01"]
        process = subprocess.Popen(command, env={**os.environ, **version, **own})
        self.processes.append(process)

        def has_committed() -> bool:
            newest = log_of(self.folder).newest()
            return newest is not None and newest.attempt == attempt

        until(lambda: has_committed() or process.poll() is not None)
        assert process.poll() is None
        return newest_of(self.folder)

    def close(self) -> None:
        """Kill them, as the loss of their machines does."""
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def attempts(tmp_path: Path) -> Iterator[Attempts]:
    made = Attempts(tmp_path / "bucket")
    yield made
    made.close()


def test_a_job_trains_on_with_a_later_library_and_with_this_one_again(attempts: Attempts, tmp_path: Path) -> None:
    upgraded = later.environment(later.make(tmp_path / "later"))
    written = [attempts.start(version).more for version in ({}, upgraded, {})]
    assert [later.FIELD in more for more in written] == [False, True, False]
    for fenced in attempts.processes[:-1]:
        assert fenced.wait(600) == ExitCode.FENCED, "a newer version fences an older one, and the other way round"
    attempts.close()
    log = log_of(attempts.folder)
    order = [commit.attempt for commit in log.commits()]
    assert order == sorted(order)
    found = log.resume(tmp_path / "found")
    assert found is not None
    assert (found.path / "value").read_text() == chain(found.step)
