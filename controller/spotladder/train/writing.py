"""Files of a checkpoint that are written in the background, after the block of `commit` and before the upload.

`commit` opens its folder here. The savers of the frameworks copy the state to the memory of the host, which takes much
less time than writing it, and leave the write to the commit. Outside a commit the files are written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Write = Callable[[], None]
"""Writes files of one checkpoint."""

_open: dict[Path, list[Write]] = {}


@contextmanager
def deferred(folder: Path) -> Iterator[list[Write]]:
    """Collect what `write` gets for this folder until the block ends."""
    writes = _open[folder] = []
    try:
        yield writes
    finally:
        del _open[folder]


def write(folder: Path, write: Write) -> None:
    """Write files below `folder`: in the background if the folder is that of an open commit, else at once."""
    for parent in (folder, *folder.parents):
        if parent in _open:
            _open[parent].append(write)
            return
    write()


def is_deferred(folder: Path) -> bool:
    """Whether `write` leaves this folder's files to a commit."""
    return any(parent in _open for parent in (folder, *folder.parents))
