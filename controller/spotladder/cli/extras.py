"""The dependencies of a command that are an extra of the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spotladder.errors import EnvironmentFailure


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Raises EnvironmentFailure with the command that installs the extra if an import in the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise EnvironmentFailure(f"{error.name} is missing: pip install 'spotladder[{extra}]'") from None
