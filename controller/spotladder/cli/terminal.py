"""The one place where text enters a terminal: nothing that the text contains can control it.

Jobs, pods and buckets choose names, messages and program output. A control sequence in them could clear the screen,
change the window's title, write to the clipboard or make a line look like another one. `main` sets `Terminal` as stdout
and stderr of every command. A drawing that moves the cursor itself uses `console`, which cleans the text of each piece
and ignores rich's markup.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import typer

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = re.compile(r"\x1b\[[0-9;:]{0,64}m")
_LINE_END = re.compile(r"\r+\n?")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Everything that a terminal may act upon but tabs and line ends, and characters that change the order of text."""


def cleaned(text: str) -> str:
    """The text with colours removed, carriage returns as line ends, and other control characters as `\\u001b`."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROL.sub(_shown, _LINE_END.sub("\n", _COLOUR.sub("", text)))


def _shown(character: re.Match[str]) -> str:
    return f"\\u{ord(character[0]):04x}"


class Terminal:
    """A stream that cleans what is written to it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        self.stream.write(cleaned(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def cleaning() -> Iterator[None]:
    """Clean all output of this process inside the block."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Terminal(sys.stdout), Terminal(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def console() -> Console:
    """A console of rich whose text is cleaned, and whose own control sequences reach the terminal."""
    from rich.console import Console, ConsoleOptions
    from rich.segment import Segment

    class _Clean(Console):
        def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(cleaned(segment.text), segment.style)

    return _Clean(file=getattr(sys.stdout, "stream", sys.stdout), markup=False, emoji=False, highlight=False)


def show_status(text: str) -> None:
    """Replace the current line of stderr with this text; nothing if stderr is no terminal."""
    stream: Any = getattr(sys.stderr, "stream", sys.stderr)
    if stream.isatty():
        stream.write(f"\r\x1b[K{cleaned(text)}")
        stream.flush()


def progress(total: int) -> Any:
    """A progress bar of `total` simulated runs on the terminal; none in a pipe."""
    stream: Any = getattr(sys.stderr, "stream", sys.stderr)
    return typer.progressbar(length=total, label="runs", show_pos=True, hidden=not stream.isatty(), file=stream)
