"""The age classes of availability spells. Hazards change with the age of a spell and are constant within a class."""

from __future__ import annotations

import math
from bisect import bisect_right

from spotladder.core.model import Instant, Seconds, Spell

TICK: Seconds = 600.0
AGES = (1, 2, 3, 5, 9, 17, 37, 73)
"""The first age in ticks of each age class. The first tick of a spell has age 1."""
EXACT = 1e-6
"""Tolerance in ticks for the rounding of times."""


def age_class(ticks: int) -> int:
    """The index of the age class for a spell of this age."""
    return bisect_right(AGES, ticks, 1) - 1


def ticks_between(since: Instant, until: Instant) -> int:
    """The number of whole ticks between two moments."""
    return int((until - since) / TICK + EXACT)


def next_tick(since: Instant, now: Instant) -> Instant:
    """The first moment after `now` that is a whole number of ticks after `since`."""
    return since + TICK * (1 + ticks_between(since, now))


def ticks_of(spell: Spell) -> int:
    """The age in ticks that a spell which has not ended has reached. It has age 1 from its start."""
    return 1 + ticks_between(spell.since, spell.until)


def ended_ticks(spell: Spell) -> int:
    """The age in ticks at which a spell has ended, at least 1."""
    return max(1, math.ceil((spell.until - spell.since) / TICK - EXACT))
