"""tests/bench/results.md keeps the sections of benchmarks that do not run."""

from __future__ import annotations

from dataclasses import asdict

from tests.bench.__main__ import PAGE, kept, section
from tests.bench.rows import Row, table


def test_sections_are_kept_as_they_are() -> None:
    page = PAGE.read_text()
    found = kept(page)
    assert "Planning" in found
    assert page.endswith("\n".join(f"## {title}\n\n{text}" for title, text in found.items()))


def test_a_section_has_the_conditions_above_its_table() -> None:
    rows = [Row("start", 1.0, "s", "limit", 2.0, "< 2 s", met=True)]
    result = {"title": "Many jobs", "note": "Measured with etcd 3.6.16.", "rows": [asdict(row) for row in rows]}
    assert section(result) == f"Measured with etcd 3.6.16.\n\n{table(rows)}"
    assert section({**result, "note": ""}, "![a picture]") == f"![a picture]\n\n{table(rows)}"
