"""The folder with the state of runs on this machine: one rule for the runner, the commands and the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.state_folder import state_root
from spotladder.train.environment import Environment
from tests.cli.terminal import call


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SPOTLADDER_STATE": "/x"}, Path("/x")),
        ({"SPOTLADDER_STATE": "/x", "XDG_STATE_HOME": "/y"}, Path("/x")),
        ({"XDG_STATE_HOME": "/y"}, Path("/y/spotladder")),
        ({"SPOTLADDER_STATE": "~/runs"}, Path("~/runs").expanduser()),
        ({}, Path("~/.local/state/spotladder").expanduser()),
    ],
)
def test_the_state_folder_is_chosen_from_the_environment(environ: dict[str, str], expected: Path) -> None:
    assert state_root(environ) == expected
    script = Environment({**environ, "SPOTLADDER_NAMESPACE": "team", "SPOTLADDER_JOB": "digits"})
    assert script.uri == str(expected / "team" / "checkpoints")


@pytest.mark.parametrize(
    "words",
    [
        ("get", "--state-dir", "~no-such-user/state"),
        ("run", "job.yaml", "--state-dir", "~no-such-user/state"),
        ("get", "--kubeconfig", "~no-such-user/config"),
        ("web", "~no-such-user/runs"),
    ],
)
def test_an_unknown_home_folder_is_an_error_with_a_remedy(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    answer = call(capsys, *words)
    assert answer.code == 2
    assert f"{words[-1]}: has no home folder of that user: write the full path, or set HOME" in answer.err
