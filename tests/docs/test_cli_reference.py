"""The page of commands matches the commands."""

from __future__ import annotations

import re

from spotladder.cli.main import GROUPS
from tests.docs.cli_reference import page
from tests.docs.markdown import ROOT


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "cli.md").read_text() == page(), "run `make reference`"


def test_every_command_that_the_help_lists_has_a_row() -> None:
    rows = set(re.findall(r"^- `(\w+)", page(), re.MULTILINE))
    assert rows == {name for group in GROUPS.values() for name, entry in group.items() if not entry.hidden}
