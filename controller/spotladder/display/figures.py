"""Formats of durations, money and counts for the live view and the report."""

from __future__ import annotations

import math

from spotladder.core.model import Seconds

NONE = "–"


def span(seconds: Seconds | None) -> str:
    """A duration in its two largest units: `7s`, `1m 23s`, `2h 05m`, `3d 04h`."""
    if seconds is None or not math.isfinite(seconds):
        return NONE
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m {rest:02}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}h {minutes:02}m"
    days, hours = divmod(hours, 24)
    return f"{days}d {hours:02}h"


def clock(seconds: Seconds) -> str:
    """A position in a run, of constant width below ten hours: `0:01:23`."""
    if not math.isfinite(seconds):
        return NONE
    whole = max(0, round(seconds))
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def money(usd: float | None, like: float | None = None) -> str:
    """An amount in USD. `like` is the largest amount of the same column, which sets the number of decimals for all of
    them."""
    if usd is None:
        return NONE
    size = abs(usd if like is None else like)
    decimals = 2 if size >= 10 else 4
    shown = f"{abs(usd):,.{decimals}f}"
    return f"-${shown}" if usd < 0 and shown.strip("0.") else f"${shown}"


def paid(usd: float, *, unpriced: bool, like: float | None = None) -> str:
    """An amount as `money` shows it: `>$1.20` if a part of it has no price, a dash if no part has one."""
    if unpriced:
        return f">{money(usd, like)}" if usd else NONE
    return money(usd, like)


def hours(number: float) -> str:
    """A number of hours with three significant digits, or without decimals: `0.667`, `12.3`, `1234`."""
    return f"{number:.3g}" if number < 100 else f"{number:.0f}"


def count(number: int | None) -> str:
    """An integer with thin spaces between groups of digits: `12 345`, never split at a line's end."""
    return NONE if number is None else f"{number:,}".replace(",", "\u202f")


def numbered(number: int, noun: str) -> str:
    """`1 worker` or `2 workers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def count_of(steps: int, total: int) -> str:
    """`60/400`; without the total if the program has not reported it."""
    return f"{count(steps)}/{count(total)}" if total else count(steps)


def percent(share: float | None, decimals: int = 0) -> str:
    """A fraction in per cent; a minus sign if negative."""
    return NONE if share is None else f"{share * 100:z.{decimals}f}\u202f%".replace("-", "−")


def rate(per_second: float | None) -> str:
    """Steps per second, or per minute if they are slow."""
    if per_second is None:
        return NONE
    if per_second >= 100:
        return f"{per_second:.0f} steps/s"
    if per_second >= 0.5:
        return f"{per_second:.1f} steps/s"
    return f"{per_second * 60:.1f} steps/min"


def measure(value: float) -> str:
    """A metric such as a loss, with four significant digits."""
    return f"{value:.4g}"


def saved(spent: float, on_demand: float) -> float | None:
    """The share saved against on-demand; None if the on-demand cost is 0."""
    return None if on_demand <= 0 else 1 - spent / on_demand
