"""How the exit code of a container is interpreted."""

from __future__ import annotations

from spotladder.core.model import Exit

KILLED = frozenset({137, 143, -9, -15})
"""Exit codes of a process that SIGKILL or SIGTERM ended, as a shell and as Python report them."""


def exit_of_code(code: int) -> Exit:
    """How a program with this exit code ended. A program that a signal ended is lost: it did not fail by itself."""
    return Exit.LOST if code in KILLED else Exit.of_code(code)
