"""The documentation shows the tables of the code."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from spotladder.workloads.provisioner_messages import Meaning
from tests.docs.markdown import ROOT
from tests.docs.tables import EFFECTS, effects, impediments, rules, transitions, verdicts


@pytest.mark.parametrize(
    ("page", "table"),
    [
        ("conditions.md", impediments),
        ("conditions.md", verdicts),
        ("conditions.md", effects),
        ("design.md", rules),
        ("design.md", transitions),
    ],
)
def test_a_page_shows_the_table(page: str, table: Callable[[], str]) -> None:
    assert table() in (ROOT / "docs" / page).read_text()


def test_every_meaning_has_one_effect() -> None:
    assert set(EFFECTS) == set(Meaning)
