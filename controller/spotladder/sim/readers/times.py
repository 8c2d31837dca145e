"""Times in JSON documents; errors name the file and the field."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from spotladder.api.problems import quoted
from spotladder.core.model import Instant
from spotladder.errors import InvalidSpec


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
