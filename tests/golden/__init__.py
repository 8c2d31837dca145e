"""Golden files of rendered objects and printed text. `UPDATE_GOLDEN=1 pytest …` regenerates those of these tests."""

from __future__ import annotations

import os
from difflib import unified_diff
from pathlib import Path

TESTS = Path(__file__).parents[1]
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def check(name: str, text: str) -> None:
    """Assert that the text equals the golden file of that name, which is relative to `tests`."""
    path = TESTS / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; see the change with UPDATE_GOLDEN=1 and git diff"


def difference(base: str, other: str) -> str:
    """The lines of `other` that differ from those of `base`, with one line around them and without line numbers."""
    lines = unified_diff(base.splitlines(keepends=True), other.splitlines(keepends=True), n=1)
    return "".join("@@\n" if line.startswith("@@") else line for line in lines)
