"""Runs the CLI in this process or in a new one."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from spotladder.cli.main import main


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
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )
    return Answer(result.returncode, result.stdout.decode(), result.stderr.decode())
