"""By how much a cluster's clock differs from ours, from the `Date` of its answers (RFC 9110, section 6.6.1)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from spotladder.core.model import Instant, Seconds

NOISE: Seconds = 3.0
"""Clocks that differ by less are taken for equal."""


def ahead(date: str | None, asked: Instant, answered: Instant) -> Seconds:
    """By how much the server's clock is ahead of ours at least; negative when it is behind, 0 when it may be right.

    The server wrote `date`, cut to the second, at some time between `asked` and `answered` (our clock).
    """
    try:
        there = parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        return 0.0
    if there - answered > NOISE:
        return there - answered
    if there + 1 - asked < -NOISE:
        return there + 1 - asked
    return 0.0
