"""Processes of a command end with it, and only the command handles SIGINT."""

from __future__ import annotations

import os
import signal
from multiprocessing import active_children

import pytest

from spotladder.sim.child_processes import MOST_ITEMS, batches, held_interrupts, pooled

PARENT = os.getpid()


def interrupted(item: int) -> int:
    """As by Ctrl-C in a terminal, which sends SIGINT to all processes of the command."""
    os.kill(os.getpid(), signal.SIGINT)
    return item


def waits_after_the_first(item: int) -> int:
    if item:
        signal.pause()
    return item


def test_an_interrupt_waits_until_the_end_of_the_block() -> None:
    inside = False
    with pytest.raises(KeyboardInterrupt), held_interrupts():  # noqa: PT012 – the interrupt must not end the block
        signal.raise_signal(signal.SIGINT)
        inside = True
    assert inside


@pytest.mark.parametrize(("items", "processes", "most"), [(100_000, 2, MOST_ITEMS), (160, 2, 10), (3, 8, 1)])
def test_batches_are_small_so_that_progress_shows(items: int, processes: int, most: int) -> None:
    found = batches(range(items), processes)
    assert [item for batch in found for item in batch] == list(range(items))
    assert max(map(len, found)) == most


def test_the_processes_ignore_interrupts() -> None:
    assert list(pooled(interrupted, range(20), 2)) == list(range(20))
    assert active_children() == []


def test_processes_whose_results_are_not_needed_are_ended(capfd: pytest.CaptureFixture[str]) -> None:
    results = pooled(waits_after_the_first, range(20), 2)
    assert next(results) == 0
    results.close()
    assert active_children() == []
    assert capfd.readouterr().err == ""
