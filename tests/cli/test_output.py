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


COMMITS = ("step", "attempt", "committed", "metrics", "path")
COMMIT = ("1200", "3", "2026-11-22 17:00:00", "loss 0.0123", "checkpoints/00001200-0003-ab12")


@pytest.mark.parametrize(("columns", "table"), [(120, True), (76, True), (44, False), (20, False)])
def test_a_terminal_too_narrow_for_a_table_gets_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int, table: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(COMMITS, [COMMIT, ("1250", "3", "2026-11-22 17:05:00", "", "checkpoints/b")], "s3://bucket/digits")
    out = capsys.readouterr().out
    assert ("───" in out) == table
    if not table:
        assert out.splitlines() == [
            "s3://bucket/digits",
            "",
            "step       1200",
            "attempt    3",
            "committed  2026-11-22 17:00:00",
            "metrics    loss 0.0123",
            "path       checkpoints/00001200-0003-ab12",
            "",
            "step       1250",
            "attempt    3",
            "committed  2026-11-22 17:05:00",
            "path       checkpoints/b",
        ]
    assert "2026-11-22 17:00:00" in out, "no cell but the last is folded"
