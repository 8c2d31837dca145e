"""The folder for the state of runs on this machine: of `spotladder run` and of scripts without a job; and home folders
in paths."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spotladder.core.contract import LaunchVariable
from spotladder.errors import InvalidSpec


def state_root(environ: Mapping[str, str]) -> Path:
    """The folder with the state of all jobs, from the environment: `$SPOTLADDER_STATE`, else a folder of the user's
    state."""
    if own := environ.get(LaunchVariable.STATE, "").strip():
        return with_home(own)
    base = environ.get("XDG_STATE_HOME") or "~/.local/state"
    return with_home(base) / "spotladder"


def with_home(path: str | Path) -> Path:
    """The path with the home folder in place of `~` and `~user`. Raises InvalidSpec if that is not known."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InvalidSpec(f"{path}: has no home folder of that user: write the full path, or set HOME") from None
