"""Finds programs that evidently do not use spotladder.train: their scripts are parsed, and never imported or run."""

from __future__ import annotations

import ast
import stat
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path as File

from spotladder.api.entrypoints import commands_of, entrypoints, program_of, shell_script, words_of
from spotladder.api.problems import Path
from spotladder.api.tieredjob import TieredJob

LONGEST = 1 << 18
"""Bytes of the largest script that is read."""

MAX_BYTES = 1 << 20
"""Bytes of all scripts that are read for a job: parsing them takes two seconds at most."""

MAX_FILES = 64
MAX_MODULES = 1000
"""The numbers of scripts and of modules that are looked up for a job."""

_MAX_DEPTH = 16
"""The number of packages around a module."""

_LIBRARY = "spotladder"
_STARTERS = frozenset({"importlib", "runpy", "subprocess"})
_STARTING_CALLS = frozenset({"__import__", "execl", "execlp", "execv", "execve", "execvp", "exec", "popen", "system"})
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
        scripts = [(path, *found) for path, script in places for found in _scripts(script, folders)]
        if not scripts or _imports_library([(file, roots) for _, _, files, roots in scripts for file in files]):
            return
    except _Unknown:
        return
    path, name, _, _ = scripts[0]
    message = (
        f"the program {name} does not import spotladder.train: it begins from the start after each loss unless it "
        "resumes by itself, and commits cannot show that it trains (set "
        "checkpoints.programFolder if it saves checkpoints: docs/trainers.md, "
        '"Your script saves its own checkpoints")'
    )
    yield path, message


_Script = tuple[str, tuple[File, ...], tuple[File, ...]]
"""The script as the entrypoint names it, the files that it begins with, and the folders of its modules."""


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
                    return module, (file, *_local(module, (folder,))), (folder, folder / "src")
    name = next((word for word in command if word.endswith(".py") and "=" not in word and not word.startswith("-")), "")
    for folder in folders if name else ():
        if _readable(folder / name):
            return name, (folder / name,), ((folder / name).parent, folder, folder / "src")
    raise _Unknown


def _readable(file: File) -> bool:
    """Whether this is a regular file that is neither empty nor too large."""
    try:
        about = file.stat()
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(about.st_mode) and 0 < about.st_size <= LONGEST


def _imports_library(scripts: Sequence[tuple[File, tuple[File, ...]]]) -> bool:
    """Whether these scripts, or the modules beside them that they import, import the library."""
    waiting, read, named, size = list(scripts), set[File](), 0, 0
    while waiting:
        file, roots = waiting.pop(0)
        if file in read:
            continue
        read.add(file)
        data = _content(file)
        size += len(data)
        modules = dict.fromkeys(_modules(data, file))
        named += len(modules)
        if len(read) > MAX_FILES or size > MAX_BYTES or named > MAX_MODULES:
            raise _Unknown
        for module in modules:
            top = module.lstrip(".").partition(".")[0]
            if module.startswith("."):
                level = len(module) - len(module.lstrip("."))
                beside = _local(module.lstrip("."), (file.parents[min(level, len(file.parents)) - 1],))
                waiting += [(found, roots) for found in beside]
            elif top == _LIBRARY:
                return True
            elif top in _STARTERS:
                raise _Unknown
            else:
                waiting += [(found, roots) for found in _local(module, roots)]
    return False


def _content(file: File) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST + 1)
    except OSError as error:
        raise _Unknown from error


def _modules(data: bytes, file: File) -> Iterator[str]:
    """The modules that a script imports, anywhere in it; those of a relative import begin with its dots."""
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes = list(ast.walk(ast.parse(data, str(file))))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _Unknown from error
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield start
            inner = start if start.endswith(".") else f"{start}."
            yield from (inner + alias.name for alias in node.names if alias.name != "*")
        elif isinstance(node, ast.Call) and _called(node.func) in _STARTING_CALLS:
            raise _Unknown


def _called(function: ast.expr) -> str:
    """The last name of the function that is called."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _local(module: str, roots: Sequence[File]) -> list[File]:
    """The files of a module in the first of these folders that has it, and those of the packages around it."""
    parts = module.split(".") if module else []
    if len(parts) > _MAX_DEPTH:
        raise _Unknown
    for root in roots:
        around = [root.joinpath(*parts[:depth], "__init__.py") for depth in range(len(parts) + 1 if parts else 1)]
        files = [*around[1:], root.joinpath(*parts).with_suffix(".py")] if parts else around
        found = [file for file in files if _exists(file)]
        if found:
            return found
    return []


def _exists(file: File) -> bool:
    """Whether a module has this file. Raises _Unknown for one that is too large."""
    try:
        if not file.is_file() or not file.stat().st_size:
            return False
    except (OSError, ValueError):
        return False
    if not _readable(file):
        raise _Unknown
    return True
