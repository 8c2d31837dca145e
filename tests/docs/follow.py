"""Runs the commands of a page in their order."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT, commands


def lay_out(project: Path) -> None:
    """Make a folder like a checkout after `make setup`, with a copy of the examples."""
    shutil.copytree(ROOT / "examples", project / "examples", ignore=shutil.ignore_patterns("checkpoints"))
    (project / ".venv").symlink_to(Path(sys.executable).parents[1])


def typed(page: Path) -> list[list[str]]:
    """The words of the page's commands that use the installation."""
    words = [shlex.split(command) for command in commands(page)]
    return [each for each in words if each[0].startswith(".venv/") and not each[0].endswith("pre-commit")]


def follow(page: Path, project: Path) -> dict[str, str]:
    """Run the commands in `project`, with state in `project`/state. All must succeed. Returns the output of each."""
    printed: dict[str, str] = {}
    lay_out(project)
    environment = {**os.environ, "XDG_STATE_HOME": str(project / "state")}
    for words in typed(page):
        command = shlex.join(words)
        run = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{command}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
        printed[command] = run.stdout + run.stderr
    return printed
