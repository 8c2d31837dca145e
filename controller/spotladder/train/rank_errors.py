"""How an error of one rank is sent to the other ranks, which raise it too."""

from __future__ import annotations

from contextlib import suppress

from spotladder.errors import LogCorrupt, SpotladderError


def described(error: BaseException) -> list[str]:
    """Encode an error for another rank."""
    return [type(error).__name__, str(error)]


def raised(description: list[str]) -> SpotladderError:
    """Decode an error of another rank: of the same type if it is one of spotladder's, with only its message."""
    name, message = description
    kinds = [SpotladderError]
    for kind in kinds:
        if kind.__name__ == name:
            with suppress(TypeError):  # The constructor of ForeignLog has more arguments: raise LogCorrupt instead.
                return kind(message)
            return LogCorrupt(message)
        kinds.extend(kind.__subclasses__())
    return SpotladderError(f"on another rank: {name}: {message}")
