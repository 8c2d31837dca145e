"""Synthetic traces: reproducible, with the statistics of their market."""

from __future__ import annotations

import numpy as np
import pytest

from spotladder.core.history.ages import TICK
from spotladder.sim.spells import durations
from spotladder.sim.synthetic import SyntheticMarket, generate

LONG = 60_000


def test_the_same_seed_makes_the_same_traces() -> None:
    first, again, other = (generate(SyntheticMarket(), 500, ["a", "b"], seed) for seed in (7, 7, 8))
    assert [one.nodes.tolist() for one in first] == [one.nodes.tolist() for one in again]
    assert first[0].nodes.tolist() != other[0].nodes.tolist()
    assert first[0].nodes.tolist() != first[1].nodes.tolist()


def test_availability_of_correlated_zones_is_correlated() -> None:
    apart, together = (
        np.corrcoef(
            [one.available(1) for one in generate(SyntheticMarket(correlation=value), LONG // 4, ["a", "b"], 1)]
        )[0, 1]
        for value in (0.0, 0.9)
    )
    assert abs(apart) < 0.1
    assert together > 0.3


def test_the_ends_of_spells_depend_on_their_age_as_in_the_market() -> None:
    (made,) = generate(SyntheticMarket(), LONG, ["a"], 3)
    lengths = [round(length / TICK) for length, ended in durations(made, 1, available=True) if ended]
    for age, chance in ((1, SyntheticMarket().lost[0]), (2, SyntheticMarket().lost[1])):
        assert np.mean([length == age for length in lengths if length >= age]) == pytest.approx(chance, abs=0.02)
