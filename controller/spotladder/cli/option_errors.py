"""Errors about the values of options name the option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from spotladder.core.durations import parse_duration
from spotladder.errors import InvalidSpec

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


@contextmanager
def option_errors() -> Iterator[None]:
    """Inside the block, an error about a field names the option of that field: `commit_time` becomes
    `--commit-time`."""
    try:
        yield
    except InvalidSpec as error:
        raise InvalidSpec(error.message, path=f"--{error.path.replace('_', '-')}") from None


def seconds(option: str, text: str) -> float:
    """The duration that an option gives, in seconds. Raises InvalidSpec."""
    if _NUMBER.fullmatch(text):
        raise InvalidSpec(f"{text!r} has no unit: write {text}h, {text}m or {text}s", path=option)
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidSpec(f"{text!r} {error}", path=option) from None
