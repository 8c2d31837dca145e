"""Tables: plain off a terminal, drawn on one."""

from __future__ import annotations

import sys

import pytest

from spotladder.cli.output import Format, print_data, print_table


def test_a_table_has_lines_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_table(("Tier", "Failures", "Saved"), [("[red]spot", "3", "1 %")])
    out = capsys.readouterr().out
    assert "───" in out
    assert "[red]spot" in out, "text of users is not markup"


@pytest.mark.parametrize("output", [Format.JSON, Format.YAML])
def test_order_and_characters_are_kept(capsys: pytest.CaptureFixture[str], output: Format) -> None:
    print_data({"z": "Δt", "a": [1.5, None]}, output)
    out = capsys.readouterr().out
    assert "Δt" in out
    assert out.index("z") < out.index("a")
