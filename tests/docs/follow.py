"""Runs the commands of a page, as somebody who follows it would type them."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from tests.docs.markdown import ROOT, commands


def follow(page: Path, project: Path) -> dict[str, str]:
    """In `project`, which gets a copy of the examples. Runs keep their state in `project`/state. What each command
    printed; all must succeed.
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
