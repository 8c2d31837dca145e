"""The folder with the state of runs on this machine: one rule for the runner, the commands and the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from spotladder.state_folder import state_root
from spotladder.train.environment import Environment


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
