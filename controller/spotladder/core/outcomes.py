"""Counts the availability spells that jobs have observed on a tier.

The counts are differences of persisted states. So every tick and every end of a spell counts once, even when the
controller restarts between two decisions.
"""

from __future__ import annotations

from spotladder.core.ages import AGES, age_class, ended_ticks, ticks_of
from spotladder.core.model import AgeCounts, Outcomes, Spell

ENDED_LIMIT = 64
"""Maximum number of ended spells of one kind; beyond it, all counts of this kind are halved. So the newest spells have
the largest weight, and the counts stay bounded."""

SURVIVED_LIMIT = 8192
"""The same for the number of ticks that spells of one kind survived: 57 days."""

NOTHING = (0,) * len(AGES)


def observed_between(before: tuple[Spell, ...], after: tuple[Spell, ...]) -> Outcomes:
    """What one job has observed of a tier between two of its states. `before` and `after` are the tier's spells in
    these, oldest first; the newest spell has not ended."""
    kinds = {True: (list(NOTHING), list(NOTHING)), False: (list(NOTHING), list(NOTHING))}
    first, age = _continued(before, after)
    for index, spell in enumerate(after[first:], first):
        survived, ended = kinds[spell.available]
        has_ended = index < len(after) - 1
        ticks = ended_ticks(spell) if has_ended else ticks_of(spell)
        for reached in range(age, ticks):
            survived[age_class(reached)] += 1
        if has_ended:
            ended[age_class(ticks)] += 1
        age = 1
    capacity, outages = (AgeCounts(tuple(kinds[kind][0]), tuple(kinds[kind][1])) for kind in (True, False))
    return Outcomes(capacity, outages)


def _continued(before: tuple[Spell, ...], after: tuple[Spell, ...]) -> tuple[int, int]:
    """The index in `after` of the newest spell of `before`, and its age in ticks then. The spells before it had ended.
    Without it all spells are new: the index is 0 and the age 1."""
    if before:
        newest, past = before[-1], before[:-1]
        for index in range(min(len(after), len(before)) - 1, -1, -1):
            spell = after[index]
            same = (spell.available, spell.since) == (newest.available, newest.since)
            if same and after[:index] == past[len(past) - index :]:
                return index, ticks_of(newest)
    return 0, 1


def added(one: Outcomes, other: Outcomes) -> Outcomes:
    """The sum of both, within the limits."""
    return Outcomes(_bounded(one.capacity, other.capacity), _bounded(one.outages, other.outages))


def _bounded(one: AgeCounts, other: AgeCounts) -> AgeCounts:
    survived, ended = _sum(one.survived, other.survived), _sum(one.ended, other.ended)
    while sum(ended) > ENDED_LIMIT or sum(survived) > SURVIVED_LIMIT:
        survived, ended = tuple(count // 2 for count in survived), tuple(count // 2 for count in ended)
    return AgeCounts(survived, ended) if any(survived) or any(ended) else AgeCounts()


def _sum(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(one or NOTHING, other or NOTHING, strict=True))
