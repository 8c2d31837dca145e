"""The delay before a retry: exponential, with jitter."""

from __future__ import annotations


def delay(first: float, longest: float, failures: int, jitter: float) -> float:
    """Seconds until the next attempt after `failures` consecutive failures (1 or more).

    The delay doubles from `first` to `longest`. `jitter`, a random number from 0 to 1, picks a point in its upper half,
    so that clients that failed together do not retry together.
    """
    return min(longest, first * 2.0 ** min(failures - 1, 20)) * (0.5 + jitter / 2)
