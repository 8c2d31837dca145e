"""How the exit code of a container is interpreted."""

from __future__ import annotations

from spotladder.core.model import Exit

KILLED_CONTAINER = (137, 143)
"""Exit codes of a container that SIGKILL or SIGTERM ended: 128 and the number of the signal."""

_KILLED = frozenset({*KILLED_CONTAINER, -9, -15})
"""The same, and the codes of a process that Python reports."""


def exit_of_code(code: int) -> Exit:
    """How a program with this exit code ended. A program that a signal ended is lost: it did not fail by itself."""
    return Exit.LOST if code in _KILLED else Exit.of_code(code)
