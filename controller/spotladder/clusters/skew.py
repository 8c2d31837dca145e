"""The difference between a cluster's clock and this machine's, from the `Date` of its responses (RFC 9110, section
6.6.1)."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from spotladder.core.model import Instant, Seconds

NOISE: Seconds = 3.0
"""Seconds of difference up to which clocks count as equal."""

TOLERATED: Seconds = 60.0
"""Seconds by which the clock of a controller may be wrong. The timers of jobs are longer."""


def correction(ahead: Seconds) -> Seconds:
    """The seconds to add to this machine's clock, if the home cluster's is `ahead` of it: the replicas of a controller
    have the same time then, although one of their machines may have a wrong one."""
    return ahead if abs(ahead) > TOLERATED else 0.0


def ahead(date: str | None, asked: Instant, answered: Instant) -> Seconds:
    """The minimum difference by which the server's clock is ahead; negative if it is behind, 0 if it may be right.

    The server wrote `date`, truncated to the second, between `asked` and `answered` (this machine's clock).
    """
    try:
        their_clock = parsedate_to_datetime(date or "").timestamp()
    except (ValueError, OverflowError):
        return 0.0
    if their_clock - answered > NOISE:
        return their_clock - answered
    if their_clock + 1 - asked < -NOISE:
        return their_clock + 1 - asked
    return 0.0
