"""Checks, before a command works, whether its output files can be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from spotladder.errors import not_written


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
