"""Runs on several processors have the results of runs on one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from spotladder.planner import parallel
from spotladder.planner.parallel import LEAST_ITEMS, spread
from spotladder.planner.simulated import Assumptions, outcomes
from tests.planner.test_plan import question

PARENT = os.getpid()
ITEMS = range(100, 100 + 4 * LEAST_ITEMS)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "processors", lambda: 3)


def test_the_results_are_in_the_order_of_the_items() -> None:
    found = spread(lambda item: (item * item, os.getpid()), ITEMS)
    assert [square for square, _pid in found] == [item * item for item in ITEMS]
    assert len({pid for _square, pid in found}) == 3


def test_few_items_are_not_spread() -> None:
    assert set(spread(lambda _item: os.getpid(), range(2 * LEAST_ITEMS - 1))) == {PARENT}


@pytest.mark.parametrize("items", [ITEMS, range(4 * LEAST_ITEMS + 1), range(5), range(0)])
def test_the_runs_of_all_processes_are_counted(items: range) -> None:
    counts: list[int] = []
    spread(abs, items, counts.append)
    assert sum(counts) == len(items)


def test_all_processes_have_ended() -> None:
    forked = {pid for pid in spread(lambda _item: os.getpid(), ITEMS) if pid != PARENT}
    assert len(forked) == 2
    for pid in forked:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def interrupted(item: int) -> int:
    """As by Ctrl-C in a terminal, which sends SIGINT to all processes of the command."""
    os.kill(os.getpid(), signal.SIGINT)
    if os.getpid() != PARENT:
        signal.pause()
    return item


def test_an_interrupt_ends_all_processes(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    pids, fork = [], os.fork

    def forked() -> int:
        pids.append(fork())
        return pids[-1]

    monkeypatch.setattr(os, "fork", forked)
    with pytest.raises(KeyboardInterrupt):
        spread(interrupted, ITEMS)
    assert len(pids) == 2
    for pid in pids:
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    assert capfd.readouterr().err == ""


def fails(item: int) -> int:
    raise ValueError(item)


def dies(item: int) -> int:
    if os.getpid() != PARENT:
        os._exit(1)
    return item


def has_no_result_for_a_pipe(item: int) -> int | Callable[[], int]:
    return item if os.getpid() == PARENT else lambda: item


def test_an_error_of_a_run_is_raised() -> None:
    with pytest.raises(ValueError, match="100"):
        spread(fails, ITEMS)


@pytest.mark.parametrize("run", [dies, has_no_result_for_a_pipe])
def test_the_runs_of_a_process_that_fails_are_repeated(run: Callable[[int], int]) -> None:
    assert spread(run, ITEMS) == list(ITEMS)


def test_simulated_runs_are_the_same_on_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(2 * LEAST_ITEMS)
    several = outcomes(question(), Assumptions(), seeds)
    monkeypatch.setattr(parallel, "processors", lambda: 1)
    assert outcomes(question(), Assumptions(), seeds) == several
