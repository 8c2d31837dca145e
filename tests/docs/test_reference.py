"""The reference pages match the models and the commands."""

from __future__ import annotations

import re

from spotladder.api import reference as fields
from spotladder.cli import reference as commands
from spotladder.cli.main import GROUPS
from tests.docs.markdown import ROOT


def test_the_pages_are_up_to_date() -> None:
    assert (ROOT / "docs" / "reference.md").read_text() == fields.page(), "run `make reference`"
    assert (ROOT / "docs" / "cli.md").read_text() == commands.page(), "run `make reference`"


def test_every_field_has_a_description() -> None:
    rows = [line for line in fields.page().splitlines() if line.startswith("| `")]
    assert len(rows) > 50
    assert not [row for row in rows if row.rstrip(" |").endswith("`") or row.endswith("|  |")]


def test_every_command_that_the_help_lists_has_a_row() -> None:
    rows = set(re.findall(r"^\| `spotladder (\w+)", commands.page(), re.MULTILINE))
    assert rows == {name for group in GROUPS.values() for name, entry in group.items() if not entry.hidden}
