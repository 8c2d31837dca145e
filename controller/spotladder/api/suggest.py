"""Suggests the intended word for a misspelt one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST = 64


def closest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The known word closest to `word`; None without one, and if two are equally close. Case, `_` and `-` are
    ignored."""
    if len(word) > _LONGEST:
        return None
    by_folded = {_folded(name): name for name in known}
    if exact := by_folded.get(_folded(word)):
        return exact
    found = difflib.get_close_matches(_folded(word), by_folded, n=2, cutoff=cutoff)
    distances = {difflib.SequenceMatcher(None, name, _folded(word)).ratio() for name in found}
    return by_folded[found[0]] if len(found) == len(distances) > 0 else None


def _folded(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()
