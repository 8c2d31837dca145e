"""Frameworks are the program's own choice: spotladder asks for one only when it is used."""

from __future__ import annotations

import importlib.util
import sys

from spotladder.errors import EnvironmentFailure


def require(module: str, extra: str) -> None:
    """Raise EnvironmentFailure, with what to do, when this Python lacks `module`. Imports nothing."""
    if importlib.util.find_spec(module) is None:
        raise EnvironmentFailure(
            f"{module} is not installed for {sys.executable}: pip install 'spotladder[{extra}]', on every node"
        )
