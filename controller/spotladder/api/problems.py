"""Errors in a user's file. All errors of a file are reported at once, each with its location and field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from spotladder.errors import InvalidSpec

Path = tuple[str | int, ...]
"""A field in a document: `("spec", "tiers", 1, "maxFailures")`."""

_LONGEST_QUOTE = 60
_SHOWN_PROBLEMS = 20
_PLAIN_KEY = re.compile(rf"[A-Za-z_][A-Za-z0-9_-]{{0,{_LONGEST_QUOTE - 1}}}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One error. `where` is `file:line:column`, `path` the field in the users' notation, such as `spec.grace`."""

    where: str
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.where, self.path, self.message) if part)


class InvalidDocument(InvalidSpec):
    """A file with at least one error. `str()` returns one line for each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        super().__init__(first.message, path=first.path, where=first.where)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems[:_SHOWN_PROBLEMS]]
        if hidden := len(self.problems) - len(lines):
            lines.append(f"{hidden} more problems; correct these first")
        return "\n".join(lines)


def problems_of(error: InvalidSpec) -> tuple[Problem, ...]:
    """The problems of an error."""
    if isinstance(error, InvalidDocument):
        return error.problems
    return (Problem(error.where, error.path, error.message),)


def dotted(path: Iterable[str | int]) -> str:
    """The path as text: `spec.tiers[1].maxFailures`. Keys that are long or not plain words are quoted:
    `labels["a.b/c"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{quoted(part)}]"
    return text


def quoted(value: object) -> str:
    """The value for a one-line message: in quotes, shortened, without control characters."""
    text = str(value)
    if len(text) > _LONGEST_QUOTE:
        text = f"{text[: _LONGEST_QUOTE - 20]}…{text[-19:]}"
    return f'"{printable(text)}"'


def printable(text: str) -> str:
    """The text on one line, with non-printable characters escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


class Refusals:
    """The errors of independent parts of an object, so that all are reported at once."""

    def __init__(self) -> None:
        self._found: list[InvalidSpec] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps the InvalidSpec of this part instead of raising it."""
        try:
            yield
        except InvalidSpec as error:
            self._found.append(error)

    def check(self) -> None:
        """Raises the error that was kept, or one InvalidDocument with all of them."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise InvalidDocument([Problem(error.where, error.path, error.message) for error in self._found])
