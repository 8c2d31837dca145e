"""The age classes of availability spells. Hazards change with the age of a spell and are constant within a class."""

from __future__ import annotations

from bisect import bisect_right

from spotladder.core.model import Seconds, Spell

TICK: Seconds = 600.0
AGES = (1, 2, 3, 5, 9, 17, 37, 73)
"""The first age in ticks of each age class. The first tick of a spell has age 1."""


def age_class(ticks: int) -> int:
    """The index of the age class for a spell of this age."""
    return max(0, bisect_right(AGES, ticks) - 1)


def ticks_of(spell: Spell) -> int:
    """The age in ticks that the spell has reached, at least 1."""
    return max(1, round((spell.until - spell.since) / TICK) + 1)
