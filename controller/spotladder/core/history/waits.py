"""The waits of all jobs for the nodes of a tier: their number by duration, in a bounded form."""

from __future__ import annotations

from bisect import bisect_left

from spotladder.core.model import Seconds

BOUNDS: tuple[Seconds, ...] = (15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 3600.0)
"""The longest wait of each class; one more class has the longer ones."""

LIMIT = 64
"""Maximum number of counted waits; beyond it, all counts are halved, so that new waits have the largest weight."""

QUANTILE = 0.75
"""The share of waits that are not longer than the usual wait."""

Waits = tuple[int, ...]
"""The number of waits of each class, shortest first; () counts none."""


def one_wait(seconds: Seconds) -> Waits:
    """The counts of this wait alone."""
    counts = [0] * (len(BOUNDS) + 1)
    counts[bisect_left(BOUNDS, seconds)] = 1
    return tuple(counts)


def added(one: Waits, other: Waits) -> Waits:
    """The sum of both, within the limit."""
    if not (one and other):
        return one or other
    counts = tuple(a + b for a, b in zip(one, other, strict=True))
    while sum(counts) > LIMIT:
        counts = tuple(count // 2 for count in counts)
    return counts


def usual_wait(waits: Waits, share: float = QUANTILE) -> Seconds:
    """The longest of this share of the waits: the bound of its class. The last class counts as
    twice the longest bound. 0 without a wait."""
    below, total = 0, sum(waits)
    for bound, count in zip((*BOUNDS, 2 * BOUNDS[-1]), waits, strict=False):
        below += count
        if count and below >= share * total:
            return bound
    return 0.0
