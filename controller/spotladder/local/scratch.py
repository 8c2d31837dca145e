"""The folder for Ray's sockets and session, which has a short name, and the removal of such folders of dead runs.

1. The runner and its watchdog hold a lock on the folder's `owner` file. The system releases it when the last of them
   ends, so a lock that can be acquired proves that both are gone.
2. The file contains the run's mark and gets its name only after it is locked, so a folder that is being created is
   never mistaken for one of a dead run. A folder without the file is left alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from spotladder.errors import EnvironmentFailure
from spotladder.local.reaper import TEMPORARY, end_run, remove

PREFIX = "sl-"

_OWNER = "owner"
_MARK = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder of one run. `lock` is the open descriptor of its lock."""

    path: Path
    lock: int

    def close(self) -> None:
        """Release the lock."""
        os.close(self.lock)


def new_scratch(mark: str) -> Scratch:
    """A new folder for the run of that mark."""
    short = Path("/tmp")  # noqa: S108 – made by mkdtemp, for this user alone
    try:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=short if os.access(short, os.W_OK) else None))
        draft = path / f".{_OWNER}"
        lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, mark.encode())
        draft.rename(path / _OWNER)
        _make_temporary(path)
    except OSError as error:
        raise EnvironmentFailure(f"{short}: cannot create a temporary folder: {error.strerror}; free space") from error
    return Scratch(path, lock)


def _make_temporary(scratch: Path) -> None:
    """A folder in the scratch folder, or a link to one in TMPDIR if that is set: checkpoints may need that disk's
    space."""
    wanted = Path(tempfile.gettempdir())
    if wanted.resolve() == scratch.parent.resolve():
        (scratch / TEMPORARY).mkdir(mode=0o700)
    else:
        (scratch / TEMPORARY).symlink_to(tempfile.mkdtemp(prefix=PREFIX, dir=wanted))


def sweep(beside: Path) -> list[Path]:
    """Kill the processes of this user's dead runs and remove their folders. Returns the removed folders."""
    swept = []
    for folder in sorted(beside.parent.glob(f"{PREFIX}*")):
        with suppress(OSError):  # The folder belongs to another user or to a live run, or was removed meanwhile.
            mine = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if folder != beside and mine and _sweep(folder):
                swept.append(folder)
    return swept


def _sweep(folder: Path) -> bool:
    lock = os.open(folder / _OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: the run is alive
        mark = os.read(lock, 64).decode(errors="replace")
        if known := _MARK.fullmatch(mark) is not None:
            end_run(mark)
            remove(folder)
        return known
    finally:
        os.close(lock)
