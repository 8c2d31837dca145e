"""Processes that make simulated runs for this one, and end with it.

A terminal sends SIGINT to all processes of a command. Only this process handles it, and then ends the others: each of
them would print a traceback, and one that ends while it holds a lock of the pool leaves the others waiting for it.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCHES = 8
"""Minimum number of batches for each process, so that no process waits long for the last one."""

MOST_ITEMS = 32
"""Maximum number of items of a batch, so that the results, and the progress, come early."""


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Inside the block, SIGINT waits until its end. Processes that are started there never receive it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def pooled(work: Callable[[Item], Result], items: Sequence[Item], processes: int) -> Generator[Result, None, None]:
    """The results of `work` for each item, in their order, each from one of the processes. They end when the iterator
    ends or is closed."""
    others = set(active_children())
    # Not `pool.map`: it cancels what is left, and the pool of Python 3.11 fails if a process ends after that.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        try:
            with held_interrupts():
                results = deque(pool.submit(_batch, work, batch) for batch in batches(items, processes))
            while results:
                yield from results.popleft().result()
        except BaseException:
            for worker in set(active_children()) - others:
                worker.terminate()
            raise


def batches(items: Sequence[Item], processes: int) -> list[Sequence[Item]]:
    """The items in their order, in batches for so many processes."""
    size = min(MOST_ITEMS, max(1, len(items) // (BATCHES * processes)))
    return [items[first : first + size] for first in range(0, len(items), size)]


def _batch(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [work(item) for item in items]
