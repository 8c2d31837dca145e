"""The parts of a benchmark: what fails or is interrupted loses nothing that is measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bench import parts
from tests.bench.parts import Group, selected
from tests.bench.rows import Row, table


@contextmanager
def site() -> Iterator[str]:
    yield "a site"


def fine(_site: str) -> Iterator[Row]:
    yield Row("fine", 1.0, "s", "-")


def late(_site: str) -> Iterator[Row]:
    yield Row("late", 2.0, "s", "-")
    raise AssertionError("its world cannot be removed")


def broken(_site: str) -> Iterator[Row]:
    raise AssertionError("no new step")


def interrupted(_site: str) -> Iterator[Row]:
    raise KeyboardInterrupt


def measured(monkeypatch: pytest.MonkeyPatch, file: Path, *arguments: str, **all_parts: parts.Part) -> list[str]:
    """The names in the result file after a run of the command line, which may end with 1."""
    monkeypatch.setattr(sys, "argv", ["bench", "--json", str(file), *arguments])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    failed: list[str] = []
    monkeypatch.setattr("sys.exit", lambda code: failed.append(f"({code})"))
    parts.main([Group(site, all_parts)], "Parts")
    return [row["name"] for row in json.loads(file.read_text())["rows"]] + failed


def test_a_part_that_fails_loses_no_other_and_no_row_that_it_has_yielded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured(monkeypatch, tmp_path / "out.json", broken=broken, late=late, fine=fine)
    assert found == ["late", "fine", "(1)"]
    assert "failed: broken, late" in capsys.readouterr().out


def test_an_interrupt_keeps_the_rows_before_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert measured(monkeypatch, tmp_path / "out.json", fine=fine, stop=interrupted, late=late) == ["fine", "(1)"]


def test_parts_that_are_not_measured_again_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    measured(monkeypatch, file, fine=fine, late=late)
    assert measured(monkeypatch, file, "--only", "f*", fine=fine, late=late) == ["fine", "late"]
    assert measured(monkeypatch, file, stop=interrupted, fine=fine, late=late) == ["fine", "late", "(1)"]
    assert measured(monkeypatch, file, fine=broken, late=late) == ["late", "(1)"]


def test_an_unknown_part_is_refused() -> None:
    with pytest.raises(ValueError, match="no part matches 'storm'"):
        selected(["fine"], ["storm"])


def test_further_columns_stand_beside_the_result() -> None:
    rows = [Row("a", 1.0, "s", "-", also={"redone": 2.0}), Row("b", 3.0, "s", "-", also={"paid, USD": 0.00123})]
    head, _, first, second = table(rows).splitlines()
    assert head == "| measurement | result | redone | paid, USD | reference | ratio | goal |"
    assert first == "| a | 1 s | 2 | – | – | – | – |"
    assert second.startswith("| b | 3 s | – | 0.00123 | – |")
