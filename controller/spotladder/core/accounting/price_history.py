"""The prices that a tier has had, newest last, in a bounded form."""

from __future__ import annotations

from itertools import pairwise

from spotladder.core.model import Instant, PricePoint, Seconds

POINTS = 24
"""Maximum number of recorded changes of a price; the oldest are dropped."""

SPACING: Seconds = 3600.0
"""Minimum time between two recorded changes. A change within it replaces the last one."""

CHANGE = 0.01
"""The smallest recorded change, relative to the last price."""


def with_price(history: tuple[PricePoint, ...], usd: float, now: Instant) -> tuple[PricePoint, ...]:
    """The history with this price if it differs from the last one."""
    if not history:
        return (PricePoint(now, usd),)
    last = history[-1]
    if abs(usd - last.usd) <= CHANGE * last.usd or now < last.since:
        return history
    if now - last.since < SPACING:
        return (*history[:-1], PricePoint(last.since, usd))
    return (*history, PricePoint(now, usd))[-POINTS:]


def mean_price(history: tuple[PricePoint, ...], now: Instant) -> float:
    """The mean price in USD until now, weighted by time; 0 without a history."""
    ends = [*history, PricePoint(now, 0.0)]
    spans = [(max(0.0, after.since - point.since), point.usd) for point, after in pairwise(ends)]
    total = sum(span for span, _usd in spans)
    return sum(span * usd for span, usd in spans) / total if total else (history[-1].usd if history else 0.0)
