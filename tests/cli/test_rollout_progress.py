"""The progress of a rollout."""

from __future__ import annotations

import pytest

from spotladder.cli.infra.progress import progress_lines


def test_lines_are_written_once_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    show = progress_lines()
    show("east", "kuberay", "installing", "1.6.1")
    show("east", "kuberay", "installing", "1.6.1")
    show("west", "kuberay", "installing", "1.6.1")
    show("east", "kuberay", "ready", "1.6.1")
    printed = [line.split(" s  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert printed == [
        "east  kuberay: installing 1.6.1",
        "west  kuberay: installing 1.6.1",
        "east  kuberay: ready 1.6.1",
    ]
