"""docs/benchmarks.md keeps the sections of benchmarks that do not run."""

from __future__ import annotations

from tests.bench.__main__ import PAGE, kept


def test_sections_are_kept_as_they_are() -> None:
    page = PAGE.read_text()
    found = kept(page)
    assert "Import times" in found
    assert page.endswith("\n".join(f"## {title}\n\n{text}" for title, text in found.items()))
