"""Checks, before a command works, whether its output files can be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from spotladder.errors import InvalidSpec, not_written

PICTURES = (".png", ".svg")
"""File names of pictures end with one of these."""


def check_picture(option: str, file: Path | None) -> None:
    """Raises InvalidSpec for a format that cannot be drawn, EnvironmentFailure without matplotlib or for a file that
    cannot be written. Needs the packages of the simulator."""
    if file is None:
        return
    if file.suffix.lower() not in PICTURES:
        raise InvalidSpec(f"must be a file name that ends with .png or .svg, not {file.name!r}", path=option)
    from spotladder.sim.plots import new_figure

    new_figure((1, 1), option)
    check_file(option, file)


def check_file(option: str, file: Path | None) -> None:
    """Raises EnvironmentFailure for a file that cannot be written. It creates no file."""
    if file is not None and (code := _obstacle(file)):
        raise not_written(option, file, OSError(code, os.strerror(code)))


def _obstacle(file: Path) -> int:
    """The error number of an attempt to write the file; 0 if it can be written."""
    if file.is_dir():
        return errno.EISDIR
    if not file.parent.is_dir():
        return errno.ENOTDIR if file.parent.exists() else errno.ENOENT
    return 0 if os.access(file if file.exists() else file.parent, os.W_OK) else errno.EACCES
