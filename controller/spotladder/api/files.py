"""Opens files that a user names, without blocking on named pipes."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

_DESCRIPTORS = ("/dev/", "/proc/")
"""Folders whose pipes have a writing process: a shell's `<(…)`, /dev/stdin."""


def open_regular(path: str | Path) -> BinaryIO:
    """Open the file for reading. Raises OSError, also for a named pipe, because opening one blocks until a writer
    opens it."""
    kind = Path(path).stat().st_mode
    if stat.S_ISFIFO(kind) and not str(path).startswith(_DESCRIPTORS):
        raise OSError(None, "it is a named pipe, not a file; use - to read standard input")
    return Path(path).open("rb")
