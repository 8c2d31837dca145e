"""Spreads simulated runs over the processors of this machine.

The processes are forked, so that they start within milliseconds with all modules that are loaded. Where that is not
possible or not safe, this process makes all runs. The results are the same.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

LEAST_ITEMS = 12
"""Minimum number of items of a process, if each is one run."""

MOST_PROCESSES = 8

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Child:
    """A process and the pipe to which it writes the results for its items."""

    pid: int
    pipe: BinaryIO
    items: Sequence[int]

    def end(self) -> None:
        """End the process, whether it has finished or not."""
        self.pipe.close()
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def spread(
    run: Callable[[int], T],
    items: Sequence[int],
    done: Callable[[int], None] = lambda _items: None,
    least: int = LEAST_ITEMS,
) -> list[T]:
    """The results of `run` for these different items, in their order. `done` is called with the number of items of
    each step: one of this process and, as their shares are equal, one of each other process. Each process has
    at least so many items, and the other processes have ended when it returns or raises."""
    parts = max(1, min(processors(), MOST_PROCESSES, len(items) // least))
    own, *others = [items[index::parts] for index in range(parts)]
    with ExitStack() as stack:
        children: list[_Child] = []
        for part in others:
            with held_interrupts():
                children.append(_forked(run, part))
                stack.callback(children[-1].end)
        found: dict[int, T] = {}
        for index, item in enumerate(own):
            found[item] = run(item)
            done(len(items[index * parts : (index + 1) * parts]))
        written = [(child.items, child.pipe.read()) for child in children]
    for part, data in written:
        found.update(zip(part, _results(run, part, data), strict=True))
    return [found[item] for item in items]


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Inside the block, SIGINT waits until its end. Processes that are started there never receive it: a terminal sends
    it to all processes of a command, and only this one handles it, and then ends the others."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def processors() -> int:
    """The number of processors that this process may use; 1 where it cannot be forked safely."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1


def _forked(run: Callable[[int], T], items: Sequence[int]) -> _Child:
    """A process that makes these runs and writes their results to a pipe."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return _Child(pid, os.fdopen(reading, "rb"), items)
    try:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump([run(item) for item in items], pipe, pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)  # without the exit handlers and the buffers of the parent


def _results(run: Callable[[int], T], items: Sequence[int], data: bytes) -> list[T]:
    """The results that a process has written. This process makes its runs if it failed, and so raises the same
    error."""
    try:
        found: list[T] = pickle.loads(data)  # noqa: S301 – written by a process of this command
    except (EOFError, pickle.UnpicklingError):
        return [run(item) for item in items]
    return found
