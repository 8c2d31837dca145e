"""Spreads simulated runs over the processors of this machine.

The processes are forked, so that they start within milliseconds with all modules that are loaded. Where that is not
possible or not safe, this process makes all runs. The results are the same.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

LEAST_ITEMS = 12
"""Minimum number of items of a process."""

MOST_PROCESSES = 8

T = TypeVar("T")


class _Child(NamedTuple):
    pid: int
    pipe: int
    items: Sequence[int]


def spread(run: Callable[[int], T], items: Sequence[int]) -> list[T]:
    """The results of `run` for these different items, in their order."""
    parts = min(processors(), MOST_PROCESSES, len(items) // LEAST_ITEMS)
    if parts < 2:
        return [run(item) for item in items]
    own, *others = [items[index::parts] for index in range(parts)]
    children = [_forked(run, part) for part in others]
    found: dict[int, T] = {item: run(item) for item in own}
    for child in children:
        found.update(zip(child.items, _results(run, child), strict=True))
    return [found[item] for item in items]


def processors() -> int:
    """The number of processors that this process may use; 1 where it cannot be forked safely."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _forked(run: Callable[[int], T], items: Sequence[int]) -> _Child:
    """A process that makes these runs and writes their results to a pipe."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(pid, reading, items)
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump([run(item) for item in items], pipe, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)  # without the exit handlers and the buffers of the parent


def _results(run: Callable[[int], T], child: _Child) -> list[T]:
    """The results of the process. This process makes its runs if it failed, and so raises the same error."""
    with os.fdopen(child.pipe, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child.pid, 0)
    try:
        found: list[T] = pickle.loads(data)  # noqa: S301 – written by a process of this command
    except (EOFError, pickle.UnpicklingError):
        return [run(item) for item in child.items]
    return found
