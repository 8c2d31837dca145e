"""The keys of a log's entries: each has the number of its entry."""

from __future__ import annotations

import re

_KEY = re.compile(r"log/(\d{8,})\.json")


def key_of(seq: int) -> str:
    """The key of the entry with this number."""
    return f"log/{seq:08d}.json"


def number_of(key: str) -> int | None:
    """The number of the entry with this key; None for another key."""
    found = _KEY.fullmatch(key)
    return int(found[1]) if found else None
