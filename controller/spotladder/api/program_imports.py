"""Finds programs that evidently do not use spotladder.train: their scripts are parsed, and never imported or run."""

from __future__ import annotations

import re
import stat
import warnings
from collections.abc import Iterator, Sequence
from modulefinder import ModuleFinder
from pathlib import Path as File
from typing import Any, NamedTuple

from spotladder.api.entrypoints import commands_of, entrypoints, program_of, shell_script, words_of
from spotladder.api.problems import Path
from spotladder.api.tieredjob import TieredJob

LONGEST = 1 << 18
"""Bytes of the largest script that is read."""

MAX_MODULES = 64
"""The number of modules that are read for a job."""

_LIBRARY = "spotladder"
_STARTERS = frozenset({"importlib", "runpy", "subprocess"})
_STARTING_CALLS = re.compile(rb"\b(?:__import__|exec[lv]?[ep]{0,2}|popen|system) *\(")
"""The modules and functions with which a script can run another one, so that its imports show only a part."""

_PREPARATIONS = frozenset(
    {
        "", ".", ":", "[", "apt-get", "cat", "cd", "chmod", "cp", "date", "echo", "exit", "export", "ls", "mkdir", "mv",
        "nvidia-smi", "pip", "pip3", "printf", "pwd", "rm", "set", "sleep", "source", "tee", "test", "touch", "trap",
        "true", "ulimit", "umask", "unset", "wait",
    }
)  # fmt: skip
"""Commands around the program."""


class _Unknown(Exception):
    """The scripts do not show whether the program uses the library."""


def without_library(job: TieredJob, folders: Sequence[File]) -> Iterator[tuple[Path, str]]:
    """The place of the program in the spec, and a warning, if no script of the job imports the library.

    `folders` are where the paths of the entrypoint begin. Yields nothing if a script is not in any of them or cannot be
    parsed, or if anything else may use the library.
    """
    if job.spec.checkpoints.program_folder is not None:
        return
    places = list(entrypoints(job))
    try:
        scripts = [(path, found) for path, script in places for found in _scripts(script, folders)]
        if not scripts or any(_may_import_library(found) for _, found in scripts):
            return
    except _Unknown:
        return
    path, name = scripts[0][0], scripts[0][1].name
    message = (
        f"the program {name} does not import spotladder.train: it begins from the start after each loss unless it "
        "resumes by itself, and commits cannot show that it trains (set "
        "checkpoints.programFolder if it saves checkpoints: docs/trainers.md, "
        '"Your script saves its own checkpoints")'
    )
    yield path, message


class _Script(NamedTuple):
    """A script as the entrypoint names it, its file, the folders of its modules, and its module if it is run as one."""

    name: str
    file: File
    roots: tuple[File, ...]
    module: str = ""


def _scripts(script: str, folders: Sequence[File]) -> Iterator[_Script]:
    """The scripts that a command runs."""
    words = words_of(script)
    if not words or any(word in ("<<", "<<-", "(") for word in words):
        raise _Unknown
    if inside := shell_script(words):
        yield from _scripts(inside, folders)
        return
    here = tuple(folders)
    for command in commands_of(words)[0]:
        if command[0] == "cd" and len(command) == 2:
            here = tuple(folder / command[1] for folder in here)
        elif program_of(command) not in _PREPARATIONS:
            yield _script_of(command, here)


def _script_of(command: list[str], folders: Sequence[File]) -> _Script:
    """The script that Python, or a launcher such as torchrun, runs with these arguments."""
    if "-c" in command:
        raise _Unknown
    if "-m" in command[:-1]:
        module = command[command.index("-m") + 1]
        place = module.replace(".", "/")
        for folder in folders:
            for file in (folder / f"{place}/__main__.py", folder / f"{place}.py"):
                if _readable(file):
                    whole = f"{module}.__main__" if file.stem == "__main__" else module
                    return _Script(module, file, (folder, folder / "src"), whole)
    name = next((word for word in command if word.endswith(".py") and "=" not in word and not word.startswith("-")), "")
    for folder in folders if name else ():
        if _readable(folder / name):
            return _Script(name, folder / name, ((folder / name).parent, folder, folder / "src"))
    raise _Unknown


def _readable(file: File) -> bool:
    """Whether this is a regular file that is neither empty nor too large."""
    try:
        about = file.stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(about.st_mode) and 0 < about.st_size <= LONGEST


def _may_import_library(script: _Script) -> bool:
    """Whether this script, or a module beside it that it imports, imports the library or may run another script."""
    finder = _Finder(path=[str(root) for root in script.roots])
    with warnings.catch_warnings(action="ignore"):
        if script.module:
            finder.import_hook(script.module)
        else:
            finder.run_script(str(script.file))
    missing = {name.partition(".")[0] for name in finder.any_missing()}
    return not missing.isdisjoint({_LIBRARY, *_STARTERS})


class _Finder(ModuleFinder):
    """Compiles a script and the modules that it imports and that are in the folders; runs none of them."""

    def find_module(self, name: str, path: Any, parent: Any = None) -> Any:
        try:
            return super().find_module(name, path, parent)
        except AttributeError:  # ModuleFinder knows no folder of modules without `__init__.py`.
            raise _Unknown from None

    def load_module(self, fqname: str, fp: Any, pathname: str, file_info: Any) -> Any:
        if fp is not None:
            file = File(pathname)
            if len(self.modules) > MAX_MODULES or file.stat().st_size > LONGEST:
                raise _Unknown
            if _STARTING_CALLS.search(file.read_bytes()):
                raise _Unknown
        try:
            return super().load_module(fqname, fp, pathname, file_info)
        except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):
            raise _Unknown from None
