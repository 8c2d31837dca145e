"""Nothing that a command starts outlives the process that runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spotladder.local.reaper import alive
from spotladder_infra.terraform.process import run

TERRAFORM = """\
import os, subprocess, sys
wait = [sys.executable, "-c", "import signal; signal.pause()"]
print(os.getpid(), flush=True)
print(subprocess.Popen(wait, start_new_session=True, stdout=subprocess.DEVNULL).pid, flush=True)
if sys.argv[1] == "wait":
    import signal
    signal.pause()
"""

RUNNER = """\
import os, pathlib, sys
from spotladder_infra.terraform.process import run
command = [sys.executable, "-c", sys.argv[1], "wait"]
print_line = lambda line: print(line, end="", flush=True)
run(command, pathlib.Path("/"), os.environ, on_line=print_line)
"""


def test_a_killed_runner_leaves_neither_terraform_nor_a_provider() -> None:
    command = [sys.executable, "-c", RUNNER, TERRAFORM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as runner:
        assert runner.stdout is not None
        started = [int(runner.stdout.readline()) for _ in range(2)]
        assert all(map(alive, started))
        runner.kill()
    deadline = time.monotonic() + 20
    while any(map(alive, started)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(alive, started))


def test_a_provider_does_not_outlive_its_command(tmp_path: Path) -> None:
    done = run([sys.executable, "-c", TERRAFORM, "end"], tmp_path, os.environ)
    assert done.code == 0
    assert not any(alive(int(process)) for process in done.output.split())


SLEEPING = ["sleep", "20"]


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_while_the_command_starts_is_forwarded(
    interrupts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    popen = subprocess.Popen

    def start(command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        if command == SLEEPING:
            for _ in range(interrupts):
                signal.raise_signal(signal.SIGINT)
        return popen(command, **options)

    monkeypatch.setattr(subprocess, "Popen", start)
    done = run(SLEEPING, tmp_path, os.environ, on_interrupt=lambda: asked.append("asked"))
    assert done.interrupted
    assert done.code in (-signal.SIGINT, -signal.SIGKILL)
    assert asked == ["asked"]
