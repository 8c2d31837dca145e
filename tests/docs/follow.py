"""Runs the commands of a page in their order."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT, commands


def follow(page: Path, project: Path) -> dict[str, str]:
    """Run the commands in `project`, with a copy of the examples and state in `project`/state. All must succeed.
    Returns the output of each command.
    """
    printed: dict[str, str] = {}
    shutil.copytree(ROOT / "examples", project / "examples", ignore=shutil.ignore_patterns("checkpoints"))
    (project / ".venv").symlink_to(Path(sys.executable).parents[1])
    environment = {**os.environ, "XDG_STATE_HOME": str(project / "state")}
    for command in commands(page):
        words = shlex.split(command)
        if words[0].startswith(".venv/") and not words[0].endswith("pre-commit"):
            run = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
            assert run.returncode == 0, f"{command}\n{run.stdout[-3000:]}\n{run.stderr[-3000:]}"
            printed[command] = run.stdout + run.stderr
    return printed
