"""Splits the output of a program into lines while it arrives."""

from __future__ import annotations

LONGEST = 1 << 20
"""Maximum number of bytes of a line that are held."""


class Lines:
    """The lines of one output that arrives in pieces.

    Of a line that a progress bar writes again and again, the last text is returned, as a terminal shows it. A line of
    more than `LONGEST` bytes is returned in parts.
    """

    def __init__(self) -> None:
        self._rest = b""

    def add(self, piece: bytes) -> list[str]:
        """The lines that are complete with this piece."""
        *lines, rest = (self._rest + piece).split(b"\n")
        self._rest = _shown(rest)
        if len(self._rest) > LONGEST:
            lines, self._rest = [*lines, self._rest], b""
        return [_text(line) for line in lines]

    def rest(self) -> list[str]:
        """The last line if it is incomplete."""
        rest, self._rest = self._rest, b""
        return [_text(rest)] if rest else []


def _shown(line: bytes) -> bytes:
    """The text after the last carriage return, except one at the end: a line feed may follow it."""
    return line[line.rstrip(b"\r").rfind(b"\r") + 1 :]


def _text(line: bytes) -> str:
    return _shown(line).decode(errors="replace").rstrip("\r")
