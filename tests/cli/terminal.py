"""Runs the CLI in this process or in a new one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from spotladder.cli.main import main
from spotladder.core.model import JobState
from spotladder.core.model.codec import dump


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def call(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Answer:
    """Run the command in this process."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Answer(code, captured.out, captured.err)


def start(*arguments: str | Path, stdin: bytes = b"", **environment: str) -> Answer:
    """Run the command in a new process."""
    result = subprocess.run(
        [sys.executable, "-c", "import sys; from spotladder.cli.main import main; sys.exit(main())", *arguments],
        input=stdin,
        capture_output=True,
        timeout=600,
        check=False,
        env={**os.environ, **environment},
    )
    return Answer(result.returncode, result.stdout.decode(), result.stderr.decode())


def earlier_run(folder: Path, monkeypatch: pytest.MonkeyPatch, state: JobState) -> Path:
    """Give the job of `tests.api.builders.JOB` a local run with this state, below `folder`. Returns the file of the
    state."""
    run = folder / "states" / "team-a" / "digits"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (run / "state.json").write_text(dump(state))
    monkeypatch.setenv("SPOTLADDER_STATE", str(folder / "states"))
    return run / "state.json"
