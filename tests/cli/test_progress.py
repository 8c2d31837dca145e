"""The progress of long commands on stderr."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spotladder.cli.terminal import cleaning, show_status
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


@pytest.mark.parametrize("terminal", [True, False])
def test_a_status_replaces_the_line_of_a_terminal(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with cleaning():
        show_status("machine: helm\x1b[2J")
        show_status("")
    assert capsys.readouterr().err == ("\r\x1b[Kmachine: helm\\u001b[2J\r\x1b[K" if terminal else "")
