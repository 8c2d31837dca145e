"""Lines of a text file with their numbers, and numbers in them; errors name file, line and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

from spotladder.api.files import open_regular
from spotladder.api.problems import quoted
from spotladder.errors import InvalidSpec
from spotladder.sim.trace import MOST_NODES


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The comma-separated fields of each line that is not empty, stripped of spaces, with the line's number from 1.
    Raises InvalidSpec for a file that cannot be read."""
    for number, fields in enumerate(csv.reader(read_text(path).splitlines()), 1):
        if any(field.strip() for field in fields):
            yield number, [field.strip() for field in fields]


def read_text(path: Path) -> str:
    """The text of the file. Raises InvalidSpec for one that cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror or error}; check its path", where=str(path)) from None
    except UnicodeDecodeError:
        raise InvalidSpec("is not a text file (expected UTF-8): use a trace", where=str(path)) from None


def refused(path: Path, line: int, message: str, column: str = "") -> InvalidSpec:
    """The error for this line: `file: line 3, price: message`."""
    return InvalidSpec(message, path=f"line {line}, {column}" if column else f"line {line}", where=str(path))


MOST = 1e13
"""Upper limit of numbers for which nothing else is specified: about 300 years in milliseconds."""


def number(path: Path, line: int, column: str, text: str, *, least: float = -math.inf, most: float = MOST) -> float:
    """The finite number in this field, from `least` to `most`. Raises InvalidSpec."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise refused(path, line, f"expected a number, got {quoted(text)}: correct or remove the line", column)
    if value < least:
        raise refused(path, line, f"expected {least:g} or more, got {text}: correct or remove the line", column)
    if value > most:
        raise refused(path, line, f"expected {most:g} or less, got {text}: correct or remove the line", column)
    return value


def count(path: Path, line: int, column: str, text: str) -> int:
    """The number of nodes in this field, a whole number. Raises InvalidSpec."""
    value = number(path, line, column, text, least=0, most=MOST_NODES)
    if value != int(value):
        raise refused(path, line, f"expected a whole number, got {text}: correct or remove the line", column)
    return int(value)
