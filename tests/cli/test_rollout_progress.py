"""The progress of a rollout: lines for a log, a table for a person."""

from __future__ import annotations

import pytest
from rich.console import Console

from spotladder.cli.infra.progress import progress, table


def test_lines_are_written_once_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as tell:
        tell("east", "kuberay", "installing", "1.6.1")
        tell("east", "kuberay", "installing", "1.6.1")
        tell("west", "kuberay", "installing", "1.6.1")
        tell("east", "kuberay", "ready", "1.6.1")
    lines = [line.split(" s  ")[1] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["east  kuberay: installing 1.6.1", "west  kuberay: installing 1.6.1", "east  kuberay: ready 1.6.1"]


def test_the_table_has_each_cluster_once_and_shows_text_as_it_is() -> None:
    console = Console(width=100, record=True, file=None, force_terminal=False)
    seen = {
        ("west", "kuberay"): ("failed", "pod [a]: ErrImagePull", 0.0),
        ("east", "pools"): ("ready", "0.1.0", 0.0),
        ("east", "kuberay"): ("installing", "1.6.1", 0.0),
    }
    with console.capture() as captured:
        console.print(table(seen, now=7.0))
    lines = [line.split() for line in captured.get().splitlines()]
    assert lines[1:] == [
        ["east", "pools", "ready", "0.1.0"],
        ["kuberay", "installing", "7", "s", "1.6.1"],
        ["west", "kuberay", "failed", "pod", "[a]:", "ErrImagePull"],
    ]
