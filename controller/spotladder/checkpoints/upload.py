"""Upload the files of a checkpoint, several in parallel."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from spotladder.checkpoints.entries import FileEntry
from spotladder.checkpoints.store import Store
from spotladder.errors import InvalidSpec

FILES_AT_ONCE = 4


def files_below(folder: Path) -> list[tuple[str, Path]]:
    """All files of a checkpoint folder, each with its name in the checkpoint, also those behind symbolic links.

    Raises OSError if the folder does not exist or cannot be read.
    """
    found: list[tuple[str, Path]] = []
    above = {folder: frozenset[str]()}
    os.scandir(folder).close()
    for at, inner, files in os.walk(folder, followlinks=True):
        containing, real = above.pop(Path(at)), os.path.realpath(at)
        if real in containing:
            inner.clear()  # A link to a folder above it.
            continue
        above |= {Path(at, name): containing | {real} for name in inner}
        paths = (Path(at, name) for name in files)
        found += [(path.relative_to(folder).as_posix(), path) for path in paths if path.is_file()]
    return sorted(found)


def upload_folder(
    store: Store, folder: Path, path: str, below: str = "", *, without: Collection[str] = (), temporary: bool = False
) -> tuple[FileEntry, ...]:
    """Upload all files of `folder` to `path` in the store, in parallel, except those of the names `without`; `below/`
    is prepended to their names. `temporary`: the files are not written any more and will be removed.

    Returns the entries of the files for the commit. Raises InvalidSpec for a file name that buckets refuse,
    StoreUnavailable.
    """
    files = {f"{below}/{name}" if below else name: file for name, file in files_below(folder) if name not in without}
    for name in files:
        if not name.isprintable():
            raise InvalidSpec(f"{name!r}: buckets refuse control characters in file names: rename this checkpoint file")
    put = store.take_file if temporary else store.put_file
    with ThreadPoolExecutor(FILES_AT_ONCE, thread_name_prefix="spotladder-upload") as pool:
        return tuple(pool.map(lambda name: replace(put(f"{path}/{name}", files[name]), name=name), files))
