"""Spells of a trace and how long they last."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.core.model import Spell
from spotladder.sim.spells import durations, spells, surviving
from tests.sim.builders import trace


def test_the_spells_of_a_trace_alternate() -> None:
    zone = trace((0, 2), (30, 3), (100, 1), (150, 2), end=1000)
    assert spells(zone, 2) == [Spell(True, 0, 100), Spell(False, 100, 150), Spell(True, 150, 1000)]
    assert surviving(durations(zone, 2, available=True), [99, 100]).tolist() == [1, 0.5]


def test_durations_are_those_of_capacity_for_all_workers() -> None:
    zone = trace((0, 1), (30, 2), (100, 3), (150, 1), (400, 2), end=1000)
    assert durations(zone, 2, available=True) == [(120, True), (600, False)]
    assert durations(zone, 2, available=False) == [(30, True), (250, True)]
    assert durations(zone, 1, available=False) == []


def test_without_spells_everything_survives() -> None:
    assert surviving([], [1, 2]).tolist() == [1, 1]


@given(found=st.lists(st.tuples(st.integers(1, 9), st.booleans()), min_size=1, max_size=30))
def test_survival_is_the_product_of_the_chances_to_outlast_each_age(found: list[tuple[int, bool]]) -> None:
    alive, expected = 1.0, []
    for age in range(11):
        at_risk = sum(length >= age for length, _ended in found)
        alive *= 1 - sum(length == age and ended for length, ended in found) / at_risk if at_risk else 1.0
        expected.append(alive)
    assert surviving(found, range(11)).tolist() == pytest.approx(expected)
