"""Files of a checkpoint that are written in the background, after the block of `commit` and before the upload.

`commit` opens its folder here. The savers of the frameworks copy the state to the memory of the host, which takes much
less time than writing it, and leave the write to the commit. Outside a commit the files are written at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

Write = Callable[[], None]
"""Writes files of one checkpoint."""


@dataclass(frozen=True, slots=True)
class _Commit:
    replicated: bool
    writes: list[Write] = field(default_factory=list)


_open: dict[Path, _Commit] = {}


@contextmanager
def deferred(folder: Path, *, replicated: bool = False) -> Iterator[list[Write]]:
    """Collect what `write` gets for this folder until the block ends. `replicated`: only rank 0's files are stored."""
    commit = _open[folder] = _Commit(replicated)
    try:
        yield commit.writes
    finally:
        del _open[folder]


def write(folder: Path, write: Write) -> None:
    """Write files below `folder`: in the background if the folder is that of an open commit, else at once."""
    commit = _commit_of(folder)
    if commit is None:
        write()
    else:
        commit.writes.append(write)


def is_deferred(folder: Path) -> bool:
    """Whether `write` leaves this folder's files to a commit."""
    return _commit_of(folder) is not None


def is_replicated(folder: Path) -> bool:
    """Whether this folder is that of a commit that stores only rank 0's files."""
    commit = _commit_of(folder)
    return commit is not None and commit.replicated


def _commit_of(folder: Path) -> _Commit | None:
    """The open commit whose folder this is, or is below."""
    return next((_open[parent] for parent in (folder, *folder.parents) if parent in _open), None)
