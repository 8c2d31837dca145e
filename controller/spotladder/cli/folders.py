"""Folders that users name on the command line."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from spotladder.errors import EnvironmentFailure


def folder(text: str) -> Path:
    """The folder that an option names. An empty name is refused: it is mostly an unset shell variable."""
    if not text.strip():
        raise typer.BadParameter("the name of the folder is empty")
    return Path(text).expanduser()


def check_writable(path: Path) -> None:
    """Make the folder and a file in it, which is removed. Raises EnvironmentFailure when that is refused."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise EnvironmentFailure(f"{path}: cannot be written: {error.strerror or error}; name another folder") from None
