"""Folders that users name on the command line."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import typer

from spotladder.errors import EnvironmentFailure
from spotladder.state_folder import with_home


def folder(text: str) -> Path:
    """The folder that an option names. Raises BadParameter for an empty name, which is usually an unset shell
    variable."""
    if not text.strip():
        raise typer.BadParameter("the folder name is empty: is a shell variable unset?")
    return with_home(text)


def to_folder(what: str) -> Any:
    """The option --to, which names a folder. `what` is its help."""
    return typer.Option("--to", metavar="DIR", parser=folder, help=what)


def check_writable(path: Path) -> None:
    """Create the folder and a temporary file in it. Raises EnvironmentFailure if either fails."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise EnvironmentFailure(f"{path}: cannot be written: {error.strerror or error}; name another folder") from None
