"""The complete scripts of the documentation as programs that a test may interrupt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.docs.markdown import ROOT, blocks


def script(marker: str, changes: Mapping[str, str] | None = None, page: str = "trainers.md") -> str:
    """The script on this page of docs that contains `marker`, with these texts replaced; each must occur."""
    (text,) = [block.text for block in blocks("python") if block.page == ROOT / "docs" / page and marker in block.text]
    for shown, tested in (changes or {}).items():
        assert shown in text
        text = text.replace(shown, tested)
    return text


def program(text: str, result: Callable[[dict[str, Any]], Any]) -> Callable[[], Any]:
    """Runs the script, and returns what `result` reads from its variables."""

    def main() -> Any:
        variables: dict[str, Any] = {"__name__": "script"}
        exec(compile(text, "script", "exec"), variables)  # noqa: S102 – the documentation's own code
        return result(variables)

    return main


def run_two_ranks(text: str, folder: Path, attempt: int = 1) -> int:
    """Run the script with `spotladder.train.torchrun` on two ranks of the job `digits` in `folder`. Returns the exit
    code."""
    folder.mkdir(exist_ok=True)
    file = folder / "script.py"
    file.write_text(text)
    settings = {"JOB": "digits", "URI": folder, "ATTEMPT": attempt, "INTERVAL": "1000steps"}
    done = subprocess.run(
        [sys.executable, "-m", "spotladder.train.torchrun", "--nproc-per-node", "2", str(file)],
        cwd=folder,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            **{f"SPOTLADDER_{key}": str(value) for key, value in settings.items()},
        },
        timeout=900,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 75}, done.stdout + done.stderr
    return done.returncode
