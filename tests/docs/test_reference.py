"""The reference page matches the models."""

from __future__ import annotations

from pathlib import Path

from tests.docs.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == page(), "run `make reference`"


def test_every_field_has_a_description() -> None:
    rows = [line for line in page().splitlines() if line.startswith("- `")]
    assert len(rows) > 50
    assert not [row for row in rows if row.endswith((":", ": "))]
