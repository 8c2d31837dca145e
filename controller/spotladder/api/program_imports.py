"""Finds programs that evidently do not use spotladder.train: their files are searched, and never imported or run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path as File

from spotladder.api.entrypoints import entrypoints
from spotladder.api.problems import Path
from spotladder.api.tieredjob import TieredJob

LONGEST = 1 << 18
"""Bytes of the largest file that is read."""

MAX_FILES = 64
MAX_ENTRIES = 10_000
"""Number of Python files of a folder that are read, and of all files and folders in it. A larger one, as with the data
beside the program, does not show whether the program uses the library."""

_SCRIPT = re.compile(r"(?<![\w./-])[\w./-]+\.py\b")
_MAY_USE_IT = re.compile(
    rb"\b(?:import|from)\s+(?:spotladder|importlib|runpy|subprocess)\b"
    rb"|\b(?:__import__|exec[lv]?[ep]{0,2}|popen|system) *\("
)
"""Imports of the library, and how a script runs another one."""


def without_library(job: TieredJob, folders: Sequence[File]) -> Iterator[tuple[Path, str]]:
    """The place of the program in the spec, and a warning, if no Python file of the job imports the library.

    `folders` are where the paths of the entrypoint begin. Yields nothing if a command names no script that is in one of
    them and can be read, or if any file there may use the library.
    """
    places = [(path, _SCRIPT.findall(script)) for path, script in entrypoints(job)]
    if job.spec.checkpoints.program_folder is not None or not all(names for _, names in places):
        return
    try:
        homes = {_home(name, folders) for _, names in places for name in names}
        if not homes or any(home is None or _may_use_library(home) for home in homes):
            return
    except OSError:
        return
    path, names = places[0]
    message = (
        f"the program {names[0]} does not import spotladder.train: it begins from the start after each loss unless it "
        "resumes by itself, and commits cannot show that it trains (set "
        "checkpoints.programFolder if it saves checkpoints: docs/trainers.md, "
        '"Your script saves its own checkpoints")'
    )
    yield path, message


def _home(script: str, folders: Sequence[File]) -> File | None:
    """The folder in which the path of this script begins, or that of the script if it leads out of it; None if the
    script is in none of them."""
    for folder in folders:
        if (file := (folder / script)).is_file():
            return folder if file.parent.resolve().is_relative_to(folder.resolve()) else file.parent
    return None


def _may_use_library(folder: File) -> bool:
    entries = list(islice(folder.rglob("*"), MAX_ENTRIES + 1))
    found = [entry for entry in entries if entry.suffix == ".py" and entry.is_file()]
    return len(entries) > MAX_ENTRIES or len(found) > MAX_FILES or any(map(_hides_or_uses_it, found))


def _hides_or_uses_it(file: File) -> bool:
    return file.stat().st_size > LONGEST or _MAY_USE_IT.search(file.read_bytes()) is not None
