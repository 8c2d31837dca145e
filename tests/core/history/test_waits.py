"""The waits for the nodes of a tier, in a bounded form."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.history.waits import BOUNDS, LIMIT, Waits, added, one_wait, usual_wait


def waits(*seconds: float) -> Waits:
    none: Waits = ()
    return reduce(added, map(one_wait, seconds), none)


@pytest.mark.parametrize(
    ("seconds", "usual"),
    [
        ((), 0.0),
        ((0.0,), 15.0),
        ((15.0,), 15.0),
        ((15.1,), 30.0),
        ((10.0, 10.0, 10.0, 5000.0), 15.0),
        ((10.0, 10.0, 200.0, 5000.0), 300.0),
        ((10.0, 5000.0), 7200.0),
    ],
)
def test_three_quarters_of_the_waits_take_at_most_the_usual_wait(seconds: tuple[float, ...], usual: float) -> None:
    assert usual_wait(waits(*seconds)) == usual


def test_new_waits_outweigh_old_ones() -> None:
    assert usual_wait(waits(*[10.0] * 200, *[500.0] * 60)) == 600.0


@given(st.lists(st.floats(0.0, 1e6), max_size=200))
def test_the_counts_stay_bounded(seconds: list[float]) -> None:
    counts = waits(*seconds)
    assert len(counts) in (0, len(BOUNDS) + 1)
    assert sum(counts) <= LIMIT
    assert (usual_wait(counts) == 0.0) == (not seconds)
