"""Spreads simulated runs over the processors of this machine.

The processes are forked, so that they start within milliseconds with all modules that are loaded. Where that is not
possible or not safe, this process makes all runs. The results are the same.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

LEAST_ITEMS = 12
"""Minimum number of items of a process, if each is one run."""

MAX_PROCESSES = 8

T = TypeVar("T")


def spread(
    run: Callable[[int], T],
    items: Sequence[int],
    done: Callable[[int], None] = lambda _items: None,
    least: int = LEAST_ITEMS,
) -> list[T]:
    """The results of `run` for these items, in their order. `done` is called with the number of items of each step.
    Each process gets at least `least` items. The processes have ended when it returns or raises."""
    parts = max(1, min(processors(), MAX_PROCESSES, len(items) // least))
    if parts == 1:
        return _counted(map(run, items), done)
    pool = ProcessPoolExecutor(parts, get_context("fork"), _begin, (run,))
    try:
        return _counted(pool.map(_one, items), done)
    except BrokenProcessPool:  # A process was killed, such as by a lack of memory.
        return [run(item) for item in items]
    finally:
        pool.shutdown(cancel_futures=True)


def processors() -> int:
    """The number of processors that this process may use; 1 where it cannot be forked safely."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _counted(results: Iterable[T], done: Callable[[int], None]) -> list[T]:
    found = []
    for result in results:
        found.append(result)
        done(1)
    return found


_RUN: dict[str, Callable[[int], Any]] = {}
"""The function that a forked process calls for each item."""


def _begin(run: Callable[[int], Any]) -> None:
    """Begin a forked process. A terminal sends SIGINT to all processes of a command, and only the first one handles
    it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _RUN["run"] = run


def _one(item: int) -> Any:
    return _RUN["run"](item)
