"""Keeps Python's garbage collector away from the caches.

The initial list fills the caches with long-lived objects without reference cycles. The collector would walk them
repeatedly: half of the time of the initial list, and later the longest pauses of the process.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_frozen() -> Iterator[None]:
    """Disable the collector inside the block, then exempt all objects that exist at its end, until `gc.unfreeze`."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()
