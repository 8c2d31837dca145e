"""What is listed at the start stays, and is in no cycles: Python's collector would walk it again and again for nothing,
which is half of the time that listing takes, and later the longest pauses that there are."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """The collector does not run, and never looks at what exists at the end until `collected_again`."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


def collected_again() -> None:
    """What was left out may have become garbage."""
    gc.unfreeze()
