"""The progress bar of simulated runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from spotladder.cli import forecast
from spotladder.cli.run_bar import BAR_AFTER, bar
from tests.cli.test_plan import RATE, planned

Capture = pytest.CaptureFixture[str]


def clock(step: float) -> Callable[[], float]:
    """A clock that advances by so many seconds whenever it is read."""
    ticks = count()
    return lambda: step * next(ticks)


def shown(capsys: Capture, step: float) -> str:
    with bar(10, clock(step)) as done:
        for _ in range(4):
            done(2)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(("step", "visible"), [(BAR_AFTER, True), (BAR_AFTER / 1000, False)])
def test_long_work_has_a_bar_on_the_terminal(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, step: float, visible: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    text = shown(capsys, step)
    assert ("runs " in text and " 8/10" in text) if visible else text == ""


def test_there_is_no_bar_in_a_pipe(capsys: Capture) -> None:
    assert shown(capsys, BAR_AFTER) == ""


def test_a_plan_counts_its_runs(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    totals: list[int] = []
    counts: list[int] = []

    @contextmanager
    def counted(total: int) -> Iterator[Callable[[int], None]]:
        totals.append(total)
        yield counts.append

    monkeypatch.setattr(forecast, "bar", counted)
    answer = planned(capsys, tmp_path, *RATE, "--runs", "20")
    assert (answer.code, answer.err, len(totals)) == (0, "", 1)
    assert sum(counts) == totals[0] == 20
