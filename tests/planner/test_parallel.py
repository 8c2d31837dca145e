"""Runs on several processors have the results of runs on one."""

from __future__ import annotations

import multiprocessing
import os
import signal

import pytest

from spotladder.planner import parallel
from spotladder.planner.parallel import LEAST_ITEMS, spread
from spotladder.planner.simulated import Assumptions, outcomes
from tests.planner.test_plan import given

PARENT = os.getpid()
ITEMS = range(100, 100 + 4 * LEAST_ITEMS)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")


@pytest.fixture(autouse=True)
def three_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "processors", lambda: 3)


def test_the_results_are_in_the_order_of_the_items() -> None:
    found = spread(lambda item: (item * item, os.getpid()), ITEMS)
    assert [square for square, _pid in found] == [item * item for item in ITEMS]
    assert PARENT not in {pid for _square, pid in found}


def test_few_items_are_not_spread() -> None:
    assert set(spread(lambda _item: os.getpid(), range(2 * LEAST_ITEMS - 1))) == {PARENT}


@pytest.mark.parametrize("items", [ITEMS, range(4 * LEAST_ITEMS + 1), range(5), range(0)])
def test_the_runs_of_all_processes_are_counted(items: range) -> None:
    counts: list[int] = []
    spread(abs, items, counts.append)
    assert sum(counts) == len(items)


def test_all_processes_have_ended() -> None:
    for pid in set(spread(lambda _item: os.getpid(), ITEMS)):
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_an_interrupt_ends_all_processes(capfd: pytest.CaptureFixture[str]) -> None:
    """As by Ctrl-C in a terminal, which sends SIGINT to all processes of the command."""
    pids: list[int] = []

    def interrupted(item: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        return os.getpid()

    def first(_items: int) -> None:
        pids.extend(process.pid for process in multiprocessing.active_children() if process.pid)
        os.kill(PARENT, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        spread(interrupted, ITEMS, first)
    assert len(pids) == 3
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


def test_an_error_of_a_run_is_raised() -> None:
    with pytest.raises(ValueError, match="100"):
        spread(fails, ITEMS)


def test_the_runs_of_a_process_that_dies_are_repeated() -> None:
    assert spread(dies, ITEMS) == list(ITEMS)


def test_simulated_runs_are_the_same_on_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(2 * LEAST_ITEMS)
    several = outcomes(given(), Assumptions(), seeds)
    monkeypatch.setattr(parallel, "processors", lambda: 1)
    assert outcomes(given(), Assumptions(), seeds) == several
