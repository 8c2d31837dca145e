"""Spells of a trace and how long they last."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.sim.spells import durations, spells, survival, surviving
from tests.sim.builders import trace


def test_spells_and_survival_are_computed_from_a_trace() -> None:
    flags = np.array([True, True, False, True, False, False, True])
    assert spells(flags, True) == [(2, True), (1, True), (1, False)]
    assert spells(flags, False) == [(1, True), (2, True)]
    assert survival([flags], True, 4).tolist() == pytest.approx([1, 2 / 3, 0, 0])


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
