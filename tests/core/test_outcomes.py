"""The outcomes of all jobs on a tier: counted from differences of states, and bounded."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.ages import AGES, TICK
from spotladder.core.availability import SPELLS, with_sightings
from spotladder.core.model import NO_OUTCOMES, AgeCounts, JobState, Outcomes, Spell
from spotladder.core.outcomes import ENDED_LIMIT, SURVIVED_LIMIT, added, observed_between

CLASSES = len(AGES)


def counts(**places: int) -> tuple[int, ...]:
    """Counts at these age classes, such as `c0=3`."""
    return tuple(places.get(f"c{place}", 0) for place in range(CLASSES))


def has(first: int, last: int) -> Spell:
    return Spell(True, first * TICK, last * TICK)


def lacks(first: int, last: int) -> Spell:
    return Spell(False, first * TICK, last * TICK)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param((), (), NO_OUTCOMES, id="nothing seen"),
        pytest.param((), (has(0, 0),), NO_OUTCOMES, id="a spell begins"),
        pytest.param((), (has(0, 3),), Outcomes(AgeCounts(counts(c0=1, c1=1, c2=1), counts())), id="it lasts"),
        pytest.param((has(0, 3),), (has(0, 3),), NO_OUTCOMES, id="the same state twice"),
        pytest.param((has(0, 3),), (has(0, 4),), Outcomes(AgeCounts(counts(c2=1), counts())), id="a tick more"),
        pytest.param(
            (has(0, 3),), (has(0, 4), lacks(4, 4)), Outcomes(AgeCounts(counts(), counts(c2=1))), id="capacity is lost"
        ),
        pytest.param(
            (has(0, 4), lacks(4, 4)),
            (has(0, 4), lacks(4, 6), has(6, 6)),
            Outcomes(outages=AgeCounts(counts(c0=1), counts(c1=1))),
            id="an outage ends",
        ),
        pytest.param(
            (has(0, 2), lacks(2, 2)),
            (lacks(2, 3), has(3, 3)),
            Outcomes(outages=AgeCounts(counts(), counts(c0=1))),
            id="the oldest spell was dropped",
        ),
        pytest.param(
            (lacks(1, 1), has(1, 1)), (lacks(1, 1), has(1, 1)), NO_OUTCOMES, id="two spells that began at once"
        ),
    ],
)
def test_outcomes_between_two_states(before: tuple[Spell, ...], after: tuple[Spell, ...], expected: Outcomes) -> None:
    assert added(NO_OUTCOMES, observed_between(before, after)) == expected


sightings = st.lists(st.tuples(st.booleans(), st.integers(1, 5)), max_size=60)


@given(sightings, st.lists(st.integers(0, 60), max_size=6))
def test_outcomes_do_not_depend_on_when_the_state_was_persisted(seen: list[tuple[bool, int]], stops: list[int]) -> None:
    """A controller that restarts, or that does not write every state, counts the same. A job that observes more than
    SPELLS changes between two writes loses the oldest."""
    states, now = [JobState()], 0.0
    for available, ticks in seen:
        last, now = now, now + ticks * TICK
        states.append(with_sightings(states[-1], {"a": available}, now, last))
    spells = [state.record("a").spells for state in states]

    def total(chosen: list[int]) -> Outcomes:
        steps = pairwise(chosen)
        return reduce(added, (observed_between(spells[first], spells[last]) for first, last in steps), NO_OUTCOMES)

    some = sorted({0, len(states) - 1, *(stop for stop in stops if stop < len(states))})
    widest = max((last - first for first, last in pairwise(some)), default=0)
    if widest < SPELLS:
        assert total(some) == total(list(range(len(states))))


age_counts = st.builds(
    AgeCounts,
    st.tuples(*[st.integers(0, 3000)] * CLASSES),
    st.tuples(*[st.integers(0, 40)] * CLASSES),
)
outcomes = st.builds(Outcomes, age_counts, age_counts)


@given(st.lists(outcomes, max_size=8))
def test_outcomes_stay_bounded(parts: list[Outcomes]) -> None:
    total = reduce(added, parts, NO_OUTCOMES)
    for kind in (total.capacity, total.outages):
        assert sum(kind.ended) <= ENDED_LIMIT
        assert sum(kind.survived) <= SURVIVED_LIMIT
