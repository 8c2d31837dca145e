"""The wheel alone, in an empty folder, runs the pair of the README, and the scripts and commands of the pages about
training, as they are shown."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.docs.markdown import ROOT, Block, blocks
from tests.packaging.build import build, copy

pytestmark = [pytest.mark.frameworks, pytest.mark.ray, pytest.mark.timeout(3600)]

README, TRAINERS, OWN = ROOT / "README.md", ROOT / "docs" / "trainers.md", ROOT / "docs" / "training-script.md"
COMMAND = re.compile(r"^(?:\$ )?((?:spotladder run|python -m) .*)$", re.MULTILINE)

SAVES_ITSELF = """
import signal
import time
from pathlib import Path

import torch

model = torch.nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
folder, start = Path("out"), 0
folder.mkdir(exist_ok=True)
for file in folder.glob("last.pt"):
    saved = torch.load(file)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    start = saved["step"]
for step in range(start + 1, 61):
    time.sleep(0.3)
    loss = model(torch.randn(16, 8)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        saved = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(saved, folder / "new")
        (folder / "new").rename(folder / "last.pt")
    if step == 50 and not start:
        signal.pause()
"""
"""A script of PyTorch that knows nothing of spotladder. Its first start waits for the loss, however late it comes."""

Shell = Callable[[str, Path], str]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Runs a command in a folder, with the wheel in a virtual environment of its own. The dependencies are those of
    this one."""
    scratch = tmp_path_factory.mktemp("walk")
    wheel = build("wheel", copy(scratch / "tree"), scratch / "dist")
    python = scratch / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", scratch / "venv"], check=True)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*install, "--python", python, wheel], check=True)
    (own,) = (scratch / "venv").glob("lib/*/site-packages")
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPOTLADDER_", "PYTHON"))}
    environment |= {"PATH": f"{python.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

    def run(command: str, folder: Path) -> str:
        done = subprocess.run(
            shlex.split(command),
            cwd=folder,
            env={**environment, "XDG_STATE_HOME": str(folder / "state")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}"
        return done.stdout

    where = run("python -c 'import spotladder; print(spotladder.__file__)'", scratch)
    assert Path(where.strip()).is_relative_to(own)
    return run


def shown(page: Path, marker: str, *languages: str) -> str:
    """The one block of the page with this text."""
    (text,) = [block.text for block in blocks(*languages) if block.page == page and marker in block.text]
    return text


def command(page: Path, marker: str) -> str:
    """The one command of the page with this text."""
    found: list[str] = []
    for block in blocks("text"):
        found += COMMAND.findall(block.text) if block.page == page else []
    (line,) = [line for line in found if marker in line]
    return line


def tiers(printed: str) -> list[tuple[str, str]]:
    """The number and the tier of each attempt, from the table at the end."""
    return re.findall(r"^(\d+)  ([\w-]+) +\d", printed, re.MULTILINE)


def test_the_pair_of_the_readme(shell: Shell, tmp_path: Path) -> None:
    """It has the losses and the tiers of the output that the README shows."""
    (tmp_path / "train.py").write_text(shown(README, "from spotladder import train", "python"))
    (tmp_path / "job.yaml").write_text(shown(README, "kind: TieredJob", "yaml"))
    (tmp_path / "world.yaml").write_text(shown(README, "pools:", "yaml"))
    expected = tiers(shown(README, "$ spotladder run", "text"))
    assert expected == [("1", "spot"), ("2", "spot"), ("3", "on-demand")]
    assert tiers(shell(command(README, "job.yaml"), tmp_path)) == expected


def complete() -> list[Block]:
    """The scripts that the pages about training call complete."""
    end = TRAINERS.read_text().partition("## Public examples")[0].count("\n")
    marks = ("job, total", "interrupt_at(")
    return [
        block
        for block in blocks("python")
        if (block.page == TRAINERS and block.line <= end)
        or (block.page == OWN and any(mark in block.text for mark in marks))
    ]


@pytest.mark.parametrize("block", complete(), ids=str)
def test_a_script_runs_without_a_job_and_again(block: Block, shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(block.text)
    started = command(TRAINERS, "train.torchrun") if "init_process_group" in block.text else "python train.py"
    for _ in range(2):
        shell(started, tmp_path)


def test_pages_have_complete_scripts() -> None:
    assert len(complete()) >= 7


def test_a_script_of_ones_own_survives_a_loss(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SAVES_ITSELF)
    printed = shell(command(TRAINERS, "--program-folder"), tmp_path)
    assert tiers(printed) == tiers(shown(TRAINERS, "committed step 10", "text")) == [("1", "spot"), ("2", "spot")]
    assert "→ 60" in printed
