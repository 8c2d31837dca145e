"""The complete scripts of the documentation as programs that a test may interrupt."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.docs.markdown import ROOT, blocks
from tests.train.builders import log_of

NOTICES = """
from transformers import TrainerCallback

from spotladder.core.contract import Notice


class Notices(TrainerCallback):
    def on_step_begin(self, arguments, state, control, **more):
        if state.global_step == INTERRUPTED and train.current().rank == 0:
            train.current()._member.listener.hear(Notice())


"""
"""A callback of transformers that gives rank 0 a notice before the step after INTERRUPTED."""


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


def trainer(arguments: str, before: str, changes: Mapping[str, str] | None = None) -> str:
    """The documentation's script of transformers' Trainer with these arguments, the code `before` it and `NOTICES`."""
    given = {
        "set_seed(7)\n": f"{before}{NOTICES}set_seed(7)\n",
        "use_cpu=True": f"use_cpu=True, disable_tqdm=True, ddp_backend='gloo', {arguments}",
        "train.huggingface.callback()": "train.huggingface.callback(), Notices()",
    }
    return script("train.huggingface.callback()", {**given, **(changes or {})})


def stop_and_continue(text: str, folder: Path) -> tuple[Path, Path]:
    """Run the script on two ranks, once without a notice, and once with one at step 8 and the next attempt, which
    resumes from the commit at the notice. Returns both folders."""
    whole, lost = folder / "whole", folder / "lost"
    uninterrupted = text.replace("INTERRUPTED", "-1")
    assert run_two_ranks(uninterrupted, whole) == 0
    assert run_two_ranks(text.replace("INTERRUPTED", "8"), lost) == 75
    (stopped,) = [commit.step for commit in log_of(lost).commits()]
    assert 8 <= stopped < 20
    assert run_two_ranks(uninterrupted, lost, attempt=2) == 0
    return whole, lost


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
