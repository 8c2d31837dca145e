"""Golden files of rendered objects. `UPDATE_GOLDEN=1 pytest tests/golden` regenerates them."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent
UPDATE = os.environ.get("UPDATE_GOLDEN") == "1"


def check(name: str, text: str) -> None:
    """Assert that the text equals the golden file of that name."""
    path = FOLDER / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{name} differs; see the change with UPDATE_GOLDEN=1 and git diff"
