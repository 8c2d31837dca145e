"""The quickstart, as it stands: every command succeeds, and its script survives three losses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.follow import follow
from tests.docs.markdown import ROOT
from tests.examples.demo import Demo, accuracy

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]


def test_quickstart(tmp_path: Path) -> None:
    follow(ROOT / "docs" / "quickstart.md", tmp_path)
    demo = Demo.at(tmp_path / "examples" / "any-script")
    history = demo.state().history
    assert [attempt.tier for attempt in history] == ["spot", "spot", "spot", "on-demand"]
    assert history[-1].end_step == 2000
    assert all(later.start_step > 0 for later in history[1:])
    assert accuracy(demo.driver_logs()) == uninterrupted(demo.folder, tmp_path) >= 0.95


def uninterrupted(folder: Path, state: Path) -> float:
    """What the script says when it is simply started."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("SPOTLADDER_")}
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env={**variables, "SPOTLADDER_STATE": str(state / "alone")},
        stdout=subprocess.PIPE,
        timeout=60,
        text=True,
        check=True,
    )
    return accuracy(done.stdout)
