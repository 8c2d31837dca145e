"""The text of a file, its lines with their numbers, and data in it; errors name the file and the place."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from spotladder.api.files import open_regular
from spotladder.api.problems import dotted, quoted
from spotladder.errors import InvalidSpec

M = TypeVar("M", bound=BaseModel)


def rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The comma-separated fields of each line that is not empty, stripped of spaces, with the line's number from 1.
    Raises InvalidSpec for a file or a line that cannot be read."""
    lines = csv.reader(read_text(path).splitlines())
    try:
        for fields in lines:
            if any(field.strip() for field in fields):
                yield lines.line_num, [field.strip() for field in fields]
    except csv.Error as error:
        raise refused(path, lines.line_num, f"{error}: correct the line") from None


def read_text(path: Path) -> str:
    """The text of the file. Raises InvalidSpec for one that cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read().decode("utf-8-sig")
    except OSError as error:
        raise InvalidSpec(f"cannot be read: {error.strerror or error}; check its path", where=str(path)) from None
    except UnicodeDecodeError:
        raise InvalidSpec("is not a text file (expected UTF-8): use a trace", where=str(path)) from None


def refused(path: Path, line: int, message: str) -> InvalidSpec:
    """The error for this line: `file: line 3: message`."""
    return InvalidSpec(message, path=f"line {line}", where=str(path))


def validated(model: type[M], data: object, path: Path, line: int | None = None) -> M:
    """The data of a file, or of a line of it, as this model. Raises InvalidSpec, located at the first wrong field."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
    field = dotted(wrong["loc"])
    place = field if line is None else f"line {line}, {field}"
    raise InvalidSpec(f"{wrong['msg']}, got {quoted(wrong['input'])}: correct it", path=place, where=str(path))
