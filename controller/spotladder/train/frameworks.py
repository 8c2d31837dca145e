"""Checks that a framework is installed when the program uses it: spotladder itself depends on none."""

from __future__ import annotations

import importlib.util
import sys

from spotladder.errors import EnvironmentFailure


def require(module: str, extra: str) -> None:
    """Raise EnvironmentFailure with a remedy if this Python lacks `module`. Does not import it."""
    if importlib.util.find_spec(module) is None:
        raise EnvironmentFailure(
            f"{module} is not installed for {sys.executable}: pip install 'spotladder[{extra}]', on every node"
        )
