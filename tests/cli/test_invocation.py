"""The words that a message prints for a command that the user can copy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spotladder.cli.invocation import command_words


def program(folder: Path, name: str = "spotladder") -> Path:
    """An executable file of that name."""
    folder.mkdir(parents=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def test_a_program_on_the_path_is_called_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = program(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(file.parent))
    monkeypatch.setattr(sys, "argv", [str(file), "run"])
    assert command_words() == ["spotladder"]


@pytest.mark.parametrize("another", [False, True])
def test_a_program_of_an_inactive_environment_is_called_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, another: bool
) -> None:
    program(tmp_path / ".venv" / "bin")
    monkeypatch.setenv("PATH", str(program(tmp_path / "bin").parent) if another else str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [".venv/bin/spotladder", "run"])
    assert command_words() == [".venv/bin/spotladder"]


def test_a_plugin_is_called_through_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [str(program(tmp_path / "bin", "kubectl-spotladder")), "run"])
    assert command_words() == ["kubectl", "spotladder"]


def test_a_module_is_called_by_the_name_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [__file__, "run"])
    assert command_words() == ["spotladder"]
