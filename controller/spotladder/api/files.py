"""Opens the files that a user names, without waiting for a writer that may never come."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import BinaryIO

_DESCRIPTORS = ("/dev/", "/proc/")
"""Pipes below these belong to a process that writes to them: `<(…)` of a shell, /dev/stdin."""


def open_regular(path: str | Path) -> BinaryIO:
    """The file, opened for reading. Raises OSError, also for a named pipe: opening one waits for its writer."""
    kind = Path(path).stat().st_mode
    if stat.S_ISFIFO(kind) and not str(path).startswith(_DESCRIPTORS):
        raise OSError(None, "it is a named pipe, not a file; use - to read standard input")
    return Path(path).open("rb")
