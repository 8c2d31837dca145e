"""Pages and tables that are generated from the code are up to date."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.docs import cli_reference, reference
from tests.docs.markdown import ROOT
from tests.docs.tables import impediments, life_cycle, verdicts


@pytest.mark.parametrize(("name", "page"), [("cli.md", cli_reference.page), ("reference.md", reference.page)])
def test_a_generated_page_is_up_to_date(name: str, page: Callable[[], str]) -> None:
    assert (ROOT / "docs" / name).read_text() == page(), "run `make reference`"


def test_every_field_has_a_description() -> None:
    rows = [line for line in reference.page().splitlines() if line.startswith("- `")]
    assert len(rows) > 50
    assert not [row for row in rows if row.endswith((":", ": "))]


@pytest.mark.parametrize(
    ("page", "table"), [("conditions.md", impediments), ("conditions.md", verdicts), ("design.md", life_cycle)]
)
def test_a_page_shows_the_table(page: str, table: Callable[[], str]) -> None:
    assert " ".join(table().split()) in " ".join((ROOT / "docs" / page).read_text().split())
