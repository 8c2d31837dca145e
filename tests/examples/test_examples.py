"""Every example does what its README says, on real Ray with real losses, and comes to the uninterrupted result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spotladder.core.model import Stage
from spotladder.core.reasons import Reason
from spotladder.story.report.prediction import ON_DEMAND, yardsticks
from tests.examples.demo import EXAMPLES, Demo
from tests.frameworks.test_same_weights import weights

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]

STEPS = 500
"""The default of the digits' `--steps`."""

DIGITS = [
    ("tensorflow", "digits-tensorflow"),
    pytest.param("torch", "digits-pytorch", marks=pytest.mark.frameworks),
    pytest.param("jax", "digits-jax", marks=pytest.mark.frameworks),
]


@pytest.mark.parametrize(("framework", "name"), DIGITS)
def test_digits(framework: str, name: str, tmp_path: Path) -> None:
    if framework != "tensorflow":
        pytest.importorskip(framework)
    demo = Demo.copied(name, tmp_path / "demo")
    demo.run()
    state = demo.state()
    assert state.stage == Stage.SUCCEEDED
    assert [(attempt.tier, attempt.reason) for attempt in state.history] == [
        ("spot-a", Reason.EVICTION_NOTICE),
        ("spot-b", Reason.INSUFFICIENT_CAPACITY),
        ("spot-c", Reason.MAX_FAILURES_EXCEEDED),
        ("on-demand", Reason.COMPLETED),
    ]
    assert accuracy(demo) >= 0.95
    facts = demo.facts()
    assert facts.recomputed, "the unannounced kill comes between two commits"
    uninterrupted = yardsticks(facts).cost(ON_DEMAND)
    assert uninterrupted is not None
    assert facts.spent < uninterrupted, "the story of the demo is that it saves money"

    whole = Demo.copied(name, tmp_path / "whole")
    whole.ray["entrypoint"] = "python train.py"
    whole.run(world=False)
    assert len(whole.state().history) == 1
    assert demo.last().step == whole.last().step == STEPS
    assert accuracy(demo) == accuracy(whole)
    assert weights(framework, demo.last(), demo.files) == weights(framework, whole.last(), whole.files)


def test_any_script(tmp_path: Path) -> None:
    demo = Demo.copied("any-script", tmp_path / "demo")
    demo.run()
    history = demo.state().history
    assert [attempt.tier for attempt in history] == ["spot", "spot", "spot", "on-demand"]
    assert history[-1].end_step == 2000
    assert all(later.start_step > 0 for later in history[1:])
    assert accuracy(demo) == uninterrupted(demo.folder, tmp_path) >= 0.95


def test_tune_sweep(tmp_path: Path) -> None:
    demo = Demo.copied("tune-sweep", tmp_path)
    demo.run()
    assert len(demo.state().history) > 1
    assert (demo.last().step, demo.last().total) == (6, 6)
    assert accuracy(demo) >= 0.95


@pytest.mark.parametrize(
    "folder", sorted(file.parent for file in EXAMPLES.glob("*/job.yaml")), ids=lambda folder: str(folder.name)
)
def test_is_short_and_told(folder: Path) -> None:
    assert len((folder / "train.py").read_text().splitlines()) <= 80
    assert f"examples/{folder.name}/job.yaml" in (folder / "README.md").read_text()


def accuracy(demo: Demo) -> float:
    """What the program says at its end."""
    return said(demo.driver_logs())


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
    return said(done.stdout)


def said(output: str) -> float:
    accuracies = re.findall(r"test accuracy (\d\.\d+)", output)
    assert accuracies, output[-2000:]
    return float(accuracies[-1])
