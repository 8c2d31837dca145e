"""Synthetic traces: reproducible, with the statistics of their market."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spotladder.errors import InvalidSpec
from spotladder.sim.spells import durations
from spotladder.sim.synthetic import AGES, SyntheticMarket, generate

LONG = 60_000


def test_the_same_seed_makes_the_same_traces() -> None:
    first, again, other = (generate(SyntheticMarket(), 500, ["a", "b"], seed) for seed in (7, 7, 8))
    assert [one.nodes.tolist() for one in first] == [one.nodes.tolist() for one in again]
    assert first[0].nodes.tolist() != other[0].nodes.tolist()
    assert first[0].nodes.tolist() != first[1].nodes.tolist()


def test_availability_of_correlated_zones_is_correlated() -> None:
    apart, together = (
        np.corrcoef([one.ticks(600) for one in generate(SyntheticMarket(correlation=value), LONG // 4, ["a", "b"], 1)])[
            0, 1
        ]
        for value in (0.0, 0.9)
    )
    assert abs(apart) < 0.1
    assert together > 0.3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"lost": (0.1,)}, f"lost: expected {len(AGES) + 1} probabilities"),
        ({"back": (float("nan"),) * 7}, "back: expected 7 probabilities"),
        ({"correlation": 2.0}, "correlation: expected 0 to 1, got 2"),
        ({"gap": 0.0}, "gap: expected more than 0 s"),
    ],
)
def test_invalid_markets_are_rejected(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        replace(SyntheticMarket(), **changes)
    assert str(caught.value).startswith(said)


def test_the_ends_of_spells_depend_on_their_age_as_in_the_market() -> None:
    (made,) = generate(SyntheticMarket(), LONG, ["a"], 3)
    lengths = [round(length / made.gap) for length, ended in durations(made, 1, available=True) if ended and made.gap]
    for age, chance in ((1, SyntheticMarket().lost[0]), (2, SyntheticMarket().lost[1])):
        assert np.mean([length == age for length in lengths if length >= age]) == pytest.approx(chance, abs=0.02)


def test_no_ticks_are_refused() -> None:
    with pytest.raises(InvalidSpec, match="ticks: expected 1 or more"):
        generate(SyntheticMarket(), 0, ["a"], 1)
