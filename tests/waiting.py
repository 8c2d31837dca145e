"""Waits for a condition of a real process or thread, which a stepped clock cannot advance."""

from __future__ import annotations

import time
from collections.abc import Callable

POLL_INTERVAL = 0.02
"""Seconds between two checks of a condition."""


def eventually(met: Callable[[], object], seconds: float = 600.0) -> bool:
    """Whether the condition is met within this time."""
    deadline = time.monotonic() + seconds
    while not met():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_INTERVAL)
    return True


def until(met: Callable[[], object], seconds: float = 600.0) -> None:
    """Wait until the condition is met. Fails after this time."""
    assert eventually(met, seconds), f"the condition is not met within {seconds:g} s"
