"""The quickstart: every command succeeds, and its script survives three losses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from spotladder.core.model import Stage
from spotladder.core.reasons import Reason
from spotladder.local.reaper import members
from spotladder.records.model import DriverStarted, Ended
from tests.docs.follow import follow
from tests.docs.markdown import ROOT
from tests.examples.demo import Demo, accuracy

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]


def test_quickstart(tmp_path: Path) -> None:
    """Three nodes get their notice; the third loss exhausts spot; on-demand finishes."""
    printed = follow(ROOT / "docs" / "quickstart.md", tmp_path)
    demo = Demo.at(tmp_path / "examples" / "any-script")
    state, records = demo.state(), demo.timeline().records
    assert state.stage is Stage.SUCCEEDED
    assert [attempt.tier for attempt in state.history] == ["spot", "spot", "spot", "on-demand"]
    assert state.record("spot").exhausted_by is Reason.MAX_FAILURES_EXCEEDED
    assert state.record("spot").failures == 3
    assert state.progress.step == state.history[-1].end_step == 2000
    for before, after in pairwise(state.history):
        assert 0 < after.start_step == before.end_step, "steps were repeated"
    assert accuracy(demo.driver_logs()) == uninterrupted(demo.folder, tmp_path) >= 0.95

    assert {record.attempt for record in records if isinstance(record, DriverStarted)} == {1, 2, 3, 4}
    assert isinstance(records[-1], Ended)
    assert records[-1].exit_code == 0
    assert all((tmp_path / "report" / name).stat().st_size > 0 for name in ("report.html", "report.json"))
    fresh, resumed = (text for command, text in printed.items() if "spotladder run" in command)
    assert "report: " in fresh
    assert resumed.endswith("the job has already succeeded; --fresh runs it again\n")
    (facts,) = tmp_path.glob("state/**/run.json")
    assert members(json.loads(facts.read_text())["mark"], set()) == []


def uninterrupted(folder: Path, state: Path) -> float:
    """The accuracy of an uninterrupted run of the script."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("SPOTLADDER_")}
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env={**variables, "SPOTLADDER_STATE": str(state / "alone")},
        stdout=subprocess.PIPE,
        timeout=600,
        text=True,
        check=True,
    )
    return accuracy(done.stdout)
