"""Tables, JSON and YAML."""

from __future__ import annotations

import sys

import pytest

from spotladder.cli.output import Format, print_data, print_table


def test_each_row_is_one_line_on_a_terminal_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "20")
    print_table(("Tier", "Failures", "Message"), [("[red]spot", "3", "exit code 1: ValueError: no data")])
    assert capsys.readouterr().out.splitlines() == [
        "TIER       FAILURES  MESSAGE",
        "[red]spot         3  exit code 1: ValueError: no data",
    ]


@pytest.mark.parametrize("output", [Format.JSON, Format.YAML])
def test_order_and_characters_are_kept(capsys: pytest.CaptureFixture[str], output: Format) -> None:
    print_data({"z": "Δt", "a": [1.5, None]}, output)
    out = capsys.readouterr().out
    assert "Δt" in out
    assert out.index("z") < out.index("a")
