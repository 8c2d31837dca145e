"""The modules that only an extra of this package installs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from spotladder.errors import EnvironmentFailure


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raises EnvironmentFailure with the command that installs the extra if an import in the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise missing(str(error.name), extra) from None


def require(extra: str, *modules: str) -> None:
    """Raises EnvironmentFailure if one of these modules of the extra is not installed. Imports none of them."""
    for module in modules:
        try:
            found = find_spec(module)
        except ModuleNotFoundError:  # a parent of the module is missing
            found = None
        if found is None:
            raise missing(module, extra)


def missing(name: str, extra: str) -> EnvironmentFailure:
    """The error for a module or package of the extra that this Python lacks."""
    return EnvironmentFailure(f"{name} is not installed in {sys.prefix}: pip install 'spotladder[{extra}]'")
