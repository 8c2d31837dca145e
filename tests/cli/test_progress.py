"""The progress bar of simulated runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.test_plan import RATE, planned

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_plan_counts_its_runs_on_a_terminal(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    answer = planned(capsys, tmp_path, *RATE, "--runs", "5")
    assert answer.code == 0
    assert "Simulated: 5 runs" in answer.out
    assert ("5/5" in answer.err) if terminal else answer.err == ""
