"""What the frameworks of a job's programs have compiled, kept beside the commit log for the next attempts.

    <uri>/<job>/compiled/00000007-0002-1f0c9a7b44de.tar   the second archive of the start with log entry 7, for the
                                                          kind of machine with this hash

1. The compile caches of a pod are in one local folder. After a commit rank 0 stores the folder if it has changed. In
   every pod, the newest archive for its kind of machine is put back; files that exist stay.
2. The frameworks key their entries by their versions, the program and the GPU, but not by the processor for which they
   compile, nor by the C library: hence the kinds of machine. The newest archive of `MAX_KINDS` kinds is kept.
3. An archive has at most `MAX_BYTES` and `MAX_FILES`, those of the newest files. An archive that has more, or
   anything but regular files below the folders of the frameworks, is not put back.
4. All of this is best effort, in threads of its own: an error is a line in the log, and the program compiles.
"""

from __future__ import annotations

import fcntl
import io
import logging
import os
import platform
import re
import stat
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import copyfileobj
from typing import Self

from spotladder.checkpoints.store import Store, listed
from spotladder.core.contract import COMPILE_CACHES
from spotladder.errors import LogCorrupt, TooLarge

_log = logging.getLogger("spotladder.checkpoints")

FOLDER = "compiled/"

MAX_BYTES = 256 << 20
"""Maximum size of an archive in bytes."""

MAX_FILES = 20_000

MAX_KINDS = 3
"""Number of kinds of machine whose newest archive is kept."""

MAX_LISTED = 1000
"""Maximum number of objects in the folder of the archives."""

PUT_BACK_TIMEOUT = 30.0
"""Seconds for which a program waits for an archive."""

SETTLED_AFTER = 10.0
"""Seconds since its last change after which a file is stored: compilers write some files in place."""

_BLOCK = 512
"""Bytes of a block of an archive: the header of a file is one, and its content is whole blocks."""

_LARGEST_EXTENSION = 2 * _BLOCK
"""Maximum bytes of the extended header of a file, which is read into memory: it has the name if that is long."""

_KEY = re.compile(r"compiled/\d{8,}-\d{4,}-([0-9a-f]{12})\.tar")


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    size: int
    changed_at: int  # nanoseconds since the epoch


class CompileCaches:
    """The compile caches in `folder`, and their archives in the store of a job. `kind` is that of this machine."""

    def __init__(self, folder: Path, store: Store, kind: str = "") -> None:
        self._folder = folder
        self._store = store
        self._kind = kind or kind_of_machine()
        self._mark = folder / "stored"
        self._count = 0
        self._putting = self._saving = threading.Thread()

    def put_back(self) -> None:
        """Begin to put the newest archive back. Of several processes on this machine, one does."""
        self._putting = _started(self._put_back)

    def wait(self) -> None:
        """Wait until the archive is put back, for at most `PUT_BACK_TIMEOUT`."""
        if self._putting.is_alive():
            self._putting.join(PUT_BACK_TIMEOUT)

    def save(self, start: int) -> None:
        """Begin to store the folder if it has changed. `start` is the number of the writer's start entry."""
        if not self._putting.is_alive() and not self._saving.is_alive():
            self._saving = _started(lambda: self._save(start))

    def _put_back(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._mark.open("a+") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            if os.fstat(mark.fileno()).st_size:
                return  # Another process has done it.
            files: list[_File] = []
            try:
                files = self._newest()
            finally:
                mark.write(_digest(files))  # After an error, too: the other processes need not wait for the same one.

    def _newest(self) -> list[_File]:
        """Put the newest archive back, and return its files; none without an archive."""
        found = listed(self._store, FOLDER, most=MAX_LISTED)
        key = max((meta.key for meta in found if self._fits(meta.key, meta.size)), default="")
        if not key:
            return []
        with tempfile.TemporaryDirectory(prefix="spotladder-compiled-") as temporary:
            archive = Path(temporary, "compiled.tar")
            self._store.get_file(key, archive)
            files = unpack(archive, self._folder)
        _log.info("compile caches: %d files are put back", len(files))
        return files

    def _fits(self, key: str, size: int) -> bool:
        match = _KEY.fullmatch(key)
        return match is not None and match[1] == self._kind and size <= MAX_BYTES

    def _save(self, start: int) -> None:
        files = settled(self._folder)
        digest = _digest(files)
        if not files or digest == self._mark.read_text():
            return
        self._count += 1
        key = f"{FOLDER}{start:08d}-{self._count:04d}-{self._kind}.tar"
        with tempfile.TemporaryDirectory(prefix="spotladder-compiled-") as temporary:
            archive = Path(temporary, "compiled.tar")
            pack(self._folder, files, archive)
            self._store.put_file(key, archive)
        self._mark.write_text(digest)
        self._store.delete(superseded(meta.key for meta in listed(self._store, FOLDER, most=MAX_LISTED)))


def _started(do: Callable[[], None]) -> threading.Thread:
    """A thread that does this. An error is logged."""

    def guarded() -> None:
        try:
            do()
        except Exception as error:  # noqa: BLE001 – whatever a foreign archive causes: the program compiles
            _log.warning("compile caches: %s", str(error) or repr(error))

    thread = threading.Thread(target=guarded, name="spotladder-compiled", daemon=True)
    thread.start()
    return thread


def kind_of_machine() -> str:
    """The hash of the features of the first processor, the C library and the version of Python."""
    features = ""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    known = (platform.machine(), platform.python_version(), *platform.libc_ver(), *sorted(features.split()))
    return sha256(" ".join(known).encode()).hexdigest()[:12]


def superseded(keys: Iterable[str]) -> list[str]:
    """The archives that are not kept."""
    ours = sorted(key for key in keys if _KEY.fullmatch(key))
    newest = {key.rpartition("-")[2]: key for key in ours}
    kept = sorted(newest.values())[-MAX_KINDS:]
    return [key for key in ours if key not in kept]


def settled(folder: Path) -> list[_File]:
    """The newest files of the frameworks that fit into an archive, without those that may still be written."""
    until, found = time.time_ns() - int(SETTLED_AFTER * 1e9), []
    for name in COMPILE_CACHES:
        for at, _, names in os.walk(folder / name):
            for path in (Path(at, name) for name in names):
                with suppress(FileNotFoundError):
                    status = path.lstat()
                    if stat.S_ISREG(status.st_mode) and status.st_size and status.st_mtime_ns <= until:
                        name_in = path.relative_to(folder).as_posix()
                        found.append(_File(name_in, status.st_size, status.st_mtime_ns))
    fitting, room = [], MAX_BYTES - 100 * _BLOCK
    for file in sorted(found, key=lambda file: (-file.changed_at, file.name))[:MAX_FILES]:
        needed = 4 * _BLOCK + file.size  # A long name takes two more blocks; the content is rounded up.
        if needed <= room:
            room -= needed
            fitting.append(file)
    return fitting


def pack(folder: Path, files: Iterable[_File], archive: Path) -> None:
    """Write the archive. Raises OSError if a file changes meanwhile."""
    with tarfile.open(archive, "w") as packed:
        for file in files:
            info = tarfile.TarInfo(file.name)
            info.size, info.mtime = file.size, file.changed_at // 1_000_000_000
            with (folder / file.name).open("rb") as reader:
                packed.addfile(info, reader)
                status = os.fstat(reader.fileno())
            if (status.st_size, status.st_mtime_ns) != (file.size, file.changed_at):
                raise OSError(f"{folder / file.name} changes: it is stored after a later commit")


def unpack(archive: Path, folder: Path) -> list[_File]:
    """Put the files of the archive back, and return them. Files that the folder has stay.

    Raises LogCorrupt, before it writes anything, if the archive has anything but regular files of the frameworks;
    TooLarge, OSError.
    """
    with tarfile.open(archive, "r:", tarinfo=_Head) as packed:
        members: list[tarfile.TarInfo] = []
        for member in iter(packed.next, None):
            if len(members) == MAX_FILES:
                raise TooLarge(archive.name, "files", MAX_FILES + 1, MAX_FILES)
            _check(member)
            members.append(member)
        for member in members:
            _put(packed, member, folder)
    return [_File(member.name, member.size, int(member.mtime * 1e9)) for member in members]


class _Head(tarfile.TarInfo):
    """The header of a regular file or of its extension. Others are refused before the library reads what they announce:
    it reads extensions into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        head = super().frombuf(buf, encoding, errors)
        if head.type not in {tarfile.REGTYPE, tarfile.AREGTYPE}:
            _require(head, head.type == tarfile.XHDTYPE and head.size <= _LARGEST_EXTENSION)
        return head


def _check(member: tarfile.TarInfo) -> None:
    """A file's bytes are in the archive, so that they are limited by its size: hence no sparse files."""
    parts = member.name.split("/")
    plain = all(part not in {"", ".", ".."} and part.isprintable() and "\\" not in part for part in parts)
    _require(
        member, member.isreg() and not member.issparse() and plain and len(parts) > 1 and parts[0] in COMPILE_CACHES
    )


def _require(member: tarfile.TarInfo, good: bool) -> None:
    if not good:
        raise LogCorrupt(
            f"an archive of compile caches has {member.name[:100]!r}: only files of frameworks are put back"
        )


def _put(packed: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Put one file back in one step, unless the folder has it."""
    target, incoming = folder / member.name, folder / "incoming"
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    incoming.unlink(missing_ok=True)
    with incoming.open("xb") as writer:
        copyfileobj(packed.extractfile(member) or io.BytesIO(), writer)
    os.utime(incoming, (member.mtime, member.mtime))
    with suppress(FileExistsError):  # A compiler has written it meanwhile.
        os.link(incoming, target)
    incoming.unlink()


def _digest(files: Iterable[_File]) -> str:
    """The same for the same names and sizes."""
    return sha256("".join(sorted(f"{file.name} {file.size}\n" for file in files)).encode()).hexdigest()
