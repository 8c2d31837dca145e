"""The documentation shows the tables of the code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.docs.markdown import ROOT
from tests.docs.tables import impediments, life_cycle, verdicts


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("conditions.md", impediments),
        ("conditions.md", verdicts),
        ("design.md", life_cycle),
    ],
)
def test_a_page_shows_the_table(page: str, table: Callable[[], str]) -> None:
    assert " ".join(table().split()) in " ".join((ROOT / "docs" / page).read_text().split())
