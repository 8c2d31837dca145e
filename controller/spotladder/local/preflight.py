"""Checks before anything is started: each failure names the place and the remedy."""

from __future__ import annotations

import ast
import importlib.util
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Mapping
from importlib.machinery import PathFinder
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

from spotladder import memory
from spotladder.core.accounting.held_nodes import GIB
from spotladder.errors import EnvironmentFailure, InvalidSpec
from spotladder.extras import require
from spotladder.local.state import RunIdentity
from spotladder.state_folder import with_home

NODE_MEMORY = 0.35 * GIB
"""Memory in bytes that a Ray node uses before it runs anything."""

LEAST_DISK = GIB // 4
OBJECT_STORE_LEAST = 80 * 1024**2  # Ray refuses less than 75 MiB.
OBJECT_STORE_MOST = 512 * 1024**2

EXTRAS = {"tensorflow": "tensorflow", "keras": "tensorflow", "torch": "torch", "jax": "jax", "optax": "jax"}
"""The extra of spotladder that installs each framework."""


def ray_version() -> str:
    """The version of the installed Ray."""
    require("local", "ray")
    return version("ray")


def check_entrypoint(entrypoint: str, cwd: Path, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Check that the program exists and that every module that its script imports is installed.

    Only certain errors are reported: shell constructs are not interpreted, and modules may be anywhere if `environment`
    or the entrypoint sets PYTHONPATH, or names another Python.
    """
    try:
        words = shlex.split(entrypoint)
    except ValueError:
        return  # A comment or a here-document: the parser of the file has already rejected unterminated quotes.
    if not words:
        raise InvalidSpec("is empty; set a command, e.g. python train.py", path=_ENTRYPOINT)
    while words and (words[0] == "exec" or ("=" in words[0] and words[0].partition("=")[0].isidentifier())):
        words = words[1:]
    if not words or not _SHELL.isdisjoint(entrypoint):
        return
    program, own = words[0], Path(sys.executable).parent
    path = f"{own}:{os.environ.get('PATH', os.defpath)}"
    found = str(cwd / with_home(program)) if "/" in program else shutil.which(program, path=path)
    if found is None or not Path(found).exists():
        is_script = program.endswith(".py") and (cwd / program).is_file()
        remedy = f"start the script with python {program}" if is_script else "correct the name, or install the program"
        raise InvalidSpec(f'no program "{program}" on PATH or in {cwd}: {remedy}', path=_ENTRYPOINT)
    script = words[1] if len(words) > 1 and Path(program).name.startswith("python") else ""
    if not script.endswith(".py"):
        return
    file = cwd / with_home(script)
    if not file.is_file():
        raise InvalidSpec(f'no file "{script}" in {cwd}: correct the name', path=_ENTRYPOINT)
    if Path(found).parent == own and "PYTHONPATH" not in environment and "PYTHONPATH=" not in entrypoint:
        check_imports(file)


def check_imports(script: Path) -> None:
    """Check that this Python finds every module that the script imports unconditionally, unless it changes
    `sys.path`."""
    try:
        content = script.read_bytes()
        tree = ast.parse(content, str(script))
    except SyntaxError as error:
        raise InvalidSpec(f"invalid Python: {error.msg}", where=f"{script}:{error.lineno}:{error.offset}") from error
    except (OSError, ValueError) as error:
        raise InvalidSpec(f"cannot be read: {error}", where=str(script)) from error
    if b"sys.path" in content:
        return
    for line, module in _imports(tree.body):
        if not _is_found(module, script.parent):
            extra = EXTRAS.get(module)
            remedy = f"pip install 'spotladder[{extra}]'" if extra else f"install the package that provides {module}"
            raise EnvironmentFailure(f"{script}:{line}: {module} is not installed in {sys.prefix}: {remedy}")


def _is_found(module: str, folder: Path) -> bool:
    """Whether this Python finds the module, in this folder or elsewhere."""
    if PathFinder.find_spec(module, [str(folder)]) is not None:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:
        return True  # It is loaded, and has no specification: `__main__`.


def _imports(body: list[ast.stmt]) -> list[tuple[int, str]]:
    """Top packages imported by these statements or inside their functions; not those in `try` or `if`."""
    found: list[tuple[int, str]] = []
    for statement in body:
        match statement:
            case ast.Import():
                found += [(statement.lineno, alias.name.partition(".")[0]) for alias in statement.names]
            case ast.ImportFrom(module=str(module), level=0):
                found.append((statement.lineno, module.partition(".")[0]))
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.With() | ast.For() | ast.While():
                found += _imports(statement.body)
    return found


def check_memory(nodes: int, available: int | None = None) -> None:
    """Check that there is memory for this number of Ray nodes at once, heads included."""
    free = memory.available() if available is None else available
    needed = int(nodes * NODE_MEMORY)
    if free is not None and free < needed:
        raise EnvironmentFailure(
            f"not enough memory for Ray: {nodes} nodes need about {needed / GIB:.1f} GiB, {free / GIB:.1f} GiB are "
            "free; end other programs or request fewer workers"
        )


def object_store(nodes: int) -> int:
    """Bytes of shared memory for each node: a share of the free memory, as several nodes run on one machine."""
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path("/tmp")  # noqa: S108 – where Ray puts it
    share = int(shutil.disk_usage(folder).free * 0.3 / nodes)
    return max(OBJECT_STORE_LEAST, min(OBJECT_STORE_MOST, share))


def check_disk(*folders: Path) -> None:
    """Check that there is disk space for logs and state."""
    for folder in folders:
        existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))
        usage = shutil.disk_usage(existing)
        free = usage.free
        # /proc and similar file systems have no size: no file can be created there.
        if usage.total and free < LEAST_DISK:
            raise EnvironmentFailure(
                f"{folder}: the disk is full ({free / 1024**2:.0f} of {LEAST_DISK // 1024**2} MiB free); free space"
            )


def check_same(run: RunIdentity, now: RunIdentity) -> None:
    """Check that a resumed run has the versions it was started with: otherwise its files may not load."""
    if run.uri != now.uri:
        raise InvalidSpec(
            f"the run to resume has its checkpoints in {run.uri}, but the file has {now.uri}; "
            "restore the address, or start over with --fresh",
            path="spec.checkpoints.uri",
        )
    for what, then, found in (("Python", run.python, now.python), ("Ray", run.ray, now.ray)):
        if then != found:
            raise EnvironmentFailure(
                f"the run was started with {what} {then}, this is {what} {found}: "
                f"resume with {what} {then}, or start over with --fresh"
            )


def python_version() -> str:
    """Major and minor version: patch releases load each other's checkpoints."""
    return ".".join(platform.python_version_tuple()[:2])


_ENTRYPOINT = "spec.workload.ray.template.spec.entrypoint"
_SHELL = frozenset("|&;<>()$`\n*?")
