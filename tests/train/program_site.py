"""Attempts of a job whose program keeps its own checkpoints, as processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.train.builders import log_of, variables
from tests.waiting import until

PROGRAM = Path(__file__).parent / "programs" / "own_checkpoints.py"


class Site:
    """A job whose attempts run in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []

    def start(self, attempt: int, *command: str, folder: str = "out", **more: Any) -> subprocess.Popen[str]:
        own = variables(self.folder / "bucket", attempt=attempt, uid="u-1", **more)
        process = subprocess.Popen(
            [sys.executable, "-m", "spotladder.train.program", folder, "--", *command],
            cwd=self.folder,
            env={**os.environ, **own, **{key.upper(): str(value) for key, value in more.items()}},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        return process

    def train(self, attempt: int, *options: str, **more: Any) -> subprocess.Popen[str]:
        return self.start(attempt, sys.executable, str(PROGRAM), "--resume", "{checkpoint}", *options, **more)

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        said, _ = process.communicate(timeout=600)
        return process.returncode, said

    def steps(self) -> list[int]:
        return [commit.step for commit in log_of(self.folder / "bucket").commits()]

    def until_committed(self, step: int) -> None:
        until(lambda: step in self.steps())

    def kill(self, process: subprocess.Popen[str]) -> None:
        """End the wrapper and its program at once, as the loss of the machine does."""
        for pid in children(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            process.kill()


def children(pid: int) -> list[int]:
    try:
        inner = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return [*inner, *(each for child in inner for each in children(child))]
