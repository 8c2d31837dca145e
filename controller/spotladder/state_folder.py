"""The folder for the state of runs on this machine: of `spotladder run` and of scripts without a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spotladder.core.contract import LaunchVariable


def state_root(environ: Mapping[str, str]) -> Path:
    """The folder with the state of all jobs, from the environment: `$SPOTLADDER_STATE`, else a folder of the user's
    state."""
    if own := environ.get(LaunchVariable.STATE, "").strip():
        return Path(own).expanduser()
    base = environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "spotladder"
