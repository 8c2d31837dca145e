"""Times in JSON documents and in lines of text; errors name the file and the field."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from spotladder.api.problems import quoted
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec
from spotladder.sim.readers.text import number, refused


def instant(text: object, field: str, path: Path) -> Instant:
    """The time in this field of the file. Raises InvalidSpec unless it is in ISO 8601 with a time zone."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidSpec(
            f"expected a time as in 2026-01-01T00:00:00Z, got {quoted(text)}: correct it", path=field, where=str(path)
        )
    return moment.timestamp()


def time_of_line(path: Path, line: int, column: str, text: str) -> Instant:
    """The time in this field of a line: seconds, or ISO 8601, in UTC without a time zone. Raises InvalidSpec."""
    if text.replace(".", "", 1).isdigit():
        return number(path, line, column, text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        message = f"expected seconds or a time as 2026-01-31T12:00:00Z, got {quoted(text)}: correct the line"
        raise refused(path, line, message, column) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
