"""Behaviour of all commands: help, errors in one line, exit codes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from spotladder.cli import main as cli
from spotladder.errors import CheckpointCorrupt, EnvironmentFailure, Fenced, InvalidSpec, SpotladderError
from tests.cli.terminal import call, start


def all_commands() -> Iterator[tuple[str, ...]]:
    """The words of every command, also of those in a group."""
    for name, entry in cli.COMMANDS.items():
        target = getattr(import_module(entry.module), entry.attribute)
        yield (name,)
        if isinstance(target, typer.Typer):
            inner: Any = get_command(target)
            yield from ((name, word) for word, found in inner.commands.items() if not found.hidden)


def test_help_lists_every_command_with_a_summary(capsys: pytest.CaptureFixture[str]) -> None:
    answer = call(capsys, "--help")
    assert answer.code == 0
    listed = answer.out.partition("\nJobs:\n")[2]
    for name, entry in cli.COMMANDS.items():
        assert (f"\n  {name} " in f"\n{listed}") is not entry.hidden
    assert re.findall(r"^(\w+):$", answer.out, re.MULTILINE)[-4:] == list(cli.GROUPS)
    assert "Examples:" in answer.out


@pytest.mark.parametrize("name", list(all_commands()), ids=" ".join)
def test_the_help_of_every_command_has_an_example_and_no_types_of_the_option_library(
    capsys: pytest.CaptureFixture[str], name: tuple[str, ...]
) -> None:
    answer = call(capsys, *name, "--help")
    assert answer.code == 0
    assert f"spotladder {' '.join(name)}" in answer.out.partition("Example")[2], "no example"
    assert max(len(line) for line in answer.out.splitlines()) <= 110
    assert not re.search(r"[{}<]|list\[|\.{6}|x>=", answer.out)
    assert not re.search(r" FILE +Folder ", answer.out), "a folder is DIR"
    assert call(capsys, *name, "-h") == answer


def test_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    answer = call(capsys, "--version")
    assert (answer.code, answer.out.split()[0]) == (0, "spotladder")


def test_no_command_shows_the_help_and_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    answer = call(capsys)
    assert (answer.code, answer.err) == (2, "")
    assert "\nJobs:\n" in answer.out


USAGE = {
    ("validte",): "error: No such command 'validte'. Did you mean 'validate'? (see: spotladder --help)\n",
    ("validate",): "error: Missing argument 'FILE' (see: spotladder validate --help)\n",
    ("validate", "--outptu", "json", "f"): (
        "error: No such option: --outptu (Possible options: --output) (see: spotladder validate --help)\n"
    ),
    ("sim", "run", "--seeds", "0"): (
        "error: Invalid value for '--seeds': Input should be greater than or equal to 1 (see: spotladder sim run "
        "--help)\n"
    ),
    ("plan", "job.yaml"): "error: Missing option '--hours' (see: spotladder plan --help)\n",
    ("validate", "-o", "xml", "f"): (
        "error: Invalid value for '--output' / '-o': 'xml' is not one of 'table', 'json', 'yaml' "
        "(see: spotladder validate --help)\n"
    ),
}


@pytest.mark.parametrize("arguments", USAGE, ids=" ".join)
def test_wrong_usage_is_one_line_and_2(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    answer = call(capsys, *arguments)
    assert (answer.code, answer.out, answer.err) == (2, "", USAGE[arguments])


ENDS = [
    (SpotladderError("failed"), 1, "error: failed\n"),
    (InvalidSpec("bad", path="spec.x", where="job.yaml:1:2"), 2, "error: job.yaml:1:2: spec.x: bad\n"),
    (EnvironmentFailure("no bucket"), 5, "error: no bucket\n"),
    (CheckpointCorrupt("torn"), 5, "error: torn\n"),
    (Fenced("stop"), 76, "error: stop\n"),
    (typer.Exit(75), 75, ""),
    (typer.Exit(3), 3, ""),
    (KeyboardInterrupt(), 130, ""),
]


@pytest.mark.parametrize(("error", "code", "said"), ENDS, ids=lambda value: getattr(type(value), "__name__", ""))
def test_every_end_has_its_code_and_at_most_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    def command() -> None:
        raise error

    monkeypatch.setattr("spotladder.cli.validate.validate", command)
    answer = call(capsys, "validate")
    assert (answer.code, answer.err) == (code, said)


def test_a_closed_pipe_is_not_an_error() -> None:
    command = [sys.executable, "-m", "spotladder.cli.main", "validate", "--help"]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=600, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (cli.PIPE_CLOSED, b"")


def test_an_error_into_a_closed_pipe_keeps_its_exit_code() -> None:
    command = [sys.executable, "-m", "spotladder.cli.main", "validate", "nowhere.yaml"]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command, stdout=writer, stderr=writer, timeout=600, check=False)
    os.close(writer)
    assert result.returncode == 2


def shell(command: str) -> tuple[int, str]:
    """The exit code and stderr of a shell command with `spotladder` in it."""
    spotladder = f"'{sys.executable}' -m spotladder.cli.main"
    text = ["bash", "-c", command.replace("spotladder", spotladder)]
    result = subprocess.run(text, capture_output=True, text=True, timeout=600, check=False)
    return result.returncode, result.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_the_output_is_one_line() -> None:
    said = "error: No space left on device; correct this and run the command again\n"
    assert shell("spotladder plan --help > /dev/full") == (5, said)


def test_closed_input_is_reported() -> None:
    code, said = shell("spotladder validate - <&-")
    assert code == 2
    assert said.startswith("error: <stdin>: cannot be read")


def test_closed_output_is_not_an_error() -> None:
    assert shell("spotladder plan --help >&-") == (0, "")
    assert shell("spotladder nosuch 2>&-") == (2, "")


def test_a_terminal_without_unicode_gets_escapes() -> None:
    answer = start("plan", "--help", PYTHONIOENCODING="latin-1", PYTHONUTF8="0")
    assert (answer.code, answer.err) == (0, "")
    assert r"\u03b1" in answer.out


def test_an_interrupt_during_imports_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    for program in ("-m", "spotladder.cli.main"), ("-c", "from spotladder.cli.main import main"):
        command, found = [sys.executable, *program], {**os.environ, "PYTHONPATH": str(tmp_path)}
        result = subprocess.run(command, capture_output=True, timeout=600, check=False, env=found)
        assert (result.returncode, result.stdout, result.stderr) == (cli.INTERRUPTED, b"", b"")


@pytest.mark.parametrize("group", ["checkpoints", "infra"])
def test_the_list_of_commands_has_whole_sentences(capsys: pytest.CaptureFixture[str], group: str) -> None:
    listed = call(capsys, group, "--help").out.partition("Commands:\n")[2].strip().splitlines()
    assert len(listed) >= 4
    assert [line for line in listed if not line.endswith(".") or line.endswith("...")] == []
    assert [entry.summary for entry in cli.COMMANDS.values() if not entry.summary.endswith(".")] == []
