"""The capacity of a tier over the ticks of its trace, as spells between its changes."""

from __future__ import annotations

import sys
from functools import lru_cache

from spotladder.core.availability import SPELLS
from spotladder.core.model import Spell
from tests.bench.ticks.job import START

NO_TICK = sys.maxsize
"""Later than every tick."""


class Capacity:
    """The capacity of one tier over time: the number of ticks, whether it has any in the first one, in which ones that
    changes, and the spells between the changes."""

    __slots__ = ("_closed", "changes", "first", "spells", "ticks")

    def __init__(self, available: tuple[bool, ...], length: int) -> None:
        flags = bytes(map(bool, available))
        self.ticks, self.first = len(flags), flags[0] == 1
        has, since = self.first, START
        changes: list[int] = []
        spells: list[Spell] = []
        while (change := flags.find(not has, changes[-1] if changes else 0)) >= 0:
            at = START + change * length
            spells.append(Spell(has, since, at))
            changes.append(change)
            has, since = not has, at
        self.changes, self.spells = (*changes, NO_TICK), tuple(spells)
        self._closed: dict[int, tuple[Spell, ...]] = {}

    def closed(self, count: int) -> tuple[Spell, ...]:
        """The newest of the spells before this number of changes, without the one that has not ended. One object for
        all runs, which a policy compares by identity."""
        found = self._closed.get(count)
        if found is None:
            found = self._closed[count] = self.spells[max(0, count + 1 - SPELLS) : count]
        return found


capacity_of = lru_cache(maxsize=64)(Capacity)
"""Several runs in succession use the same traces."""

ALWAYS = Capacity((True,), 1)
"""The capacity of a tier without a trace."""
