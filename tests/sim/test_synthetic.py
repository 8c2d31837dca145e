"""Synthetic traces: reproducible, with the statistics of the market that they are fitted to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spotladder.errors import InvalidSpec
from spotladder.sim.spells import survival
from spotladder.sim.synthetic import AGES, SyntheticMarket, fit, generate, generate_zones
from spotladder.sim.trace import of_ticks
from tests.sim.builders import trace

LONG = 60_000


def test_the_same_seed_makes_the_same_traces() -> None:
    first, again, other = (generate(SyntheticMarket(), 500, ["a", "b"], seed) for seed in (7, 7, 8))
    assert [one.nodes.tolist() for one in first] == [one.nodes.tolist() for one in again]
    assert first[0].nodes.tolist() != other[0].nodes.tolist()
    assert first[0].nodes.tolist() != first[1].nodes.tolist()


def test_a_fit_recovers_the_market_and_its_survival_curves() -> None:
    made = generate(SyntheticMarket(), LONG, ["a"], 3)
    found = fit(made)
    assert found.gap == 600
    assert found.lost == pytest.approx(SyntheticMarket().lost, abs=0.02)
    assert found.back == pytest.approx(SyntheticMarket().back, abs=0.02)
    source, copy = made[0].ticks(600), generate(found, LONG, ["b"], 4)[0].ticks(600)
    for available in (True, False):
        assert survival([copy], available, 60) == pytest.approx(survival([source], available, 60), abs=0.05)


def test_a_spell_that_is_cut_off_does_not_count_as_one_that_lasts() -> None:
    """In short windows, most spells are cut off. Here their age does not matter."""
    market = SyntheticMarket(lost=(0.2,) * 7, back=(0.2,) * 7)
    flags = generate(market, LONG, ["a"], 3)[0].ticks(600)
    found = fit([of_ticks("a", flags[begin : begin + 5], 600) for begin in range(0, LONG, 5)])
    assert found.lost[:3] == pytest.approx((0.2, 0.2, 0.2), abs=0.015)
    assert found.back[:3] == pytest.approx((0.2, 0.2, 0.2), abs=0.015)


def test_the_start_and_the_end_of_short_windows_cut_off_spells_of_both_kinds_alike() -> None:
    """In windows of a day, many spells of the usual market begin before the start."""
    flags = generate(SyntheticMarket(), LONG, ["a"], 3)[0].ticks(600)
    whole, windows = (
        fit([of_ticks("a", flags[begin : begin + length], 600) for begin in range(0, LONG, length)])
        for length in (LONG, 144)
    )
    assert _share(whole) == pytest.approx(flags.mean(), abs=0.005)
    assert _share(windows) == pytest.approx(flags.mean(), abs=0.02)


def test_a_few_long_outages_do_not_outweigh_the_share_of_the_record() -> None:
    """Windows of 60 h see most of an outage of 100 h, and mostly not its end."""
    turn = np.repeat([True, False] * 9, [6, 6] * 8 + [60, 600])
    flags = np.tile(turn, 20)
    windows = [of_ticks("a", flags[begin : begin + 360], 600) for begin in range(0, len(flags) - 360, 31)]
    share = np.mean([one.share() for one in windows])
    market = fit(windows)
    assert _share(market) == pytest.approx(share, abs=0.01)
    assert generate(market, LONG, ["copy"], 1)[0].share() == pytest.approx(share, abs=0.05)


def _share(market: SyntheticMarket) -> float:
    """The share of the time with capacity: that of the mean lengths of the spells."""
    with_capacity, without = (
        sum(
            float(np.prod([(1 - chance) ** most for chance, most in zip(chances[:index], _WIDTHS, strict=False)]))
            * (1 - (1 - chances[index]) ** _WIDTHS[index])
            / chances[index]
            for index in range(len(chances))
        )
        for chances in (market.lost, market.back)
    )
    return with_capacity / (with_capacity + without)


_WIDTHS = [*np.diff((0, *AGES)).tolist(), 10**6]
"""Ticks in each range of ages."""


def test_availability_of_correlated_zones_is_correlated() -> None:
    apart, together = (
        np.corrcoef([one.ticks(600) for one in generate(SyntheticMarket(correlation=value), LONG // 4, ["a", "b"], 1)])[
            0, 1
        ]
        for value in (0.0, 0.9)
    )
    assert abs(apart) < 0.1
    assert together > 0.3
    assert fit(generate(SyntheticMarket(correlation=0.9), LONG // 4, ["a", "b"], 1)).correlation == pytest.approx(
        together
    )


def test_zones_of_different_markets_correlate_only_if_asked() -> None:
    """Before, they had the same random numbers."""
    quiet = replace(SyntheticMarket(), lost=tuple(0.9 * chance for chance in SyntheticMarket().lost))
    apart, together = (
        np.corrcoef(
            [
                one.ticks(600)
                for one in generate_zones(
                    {"a": replace(SyntheticMarket(), correlation=value), "b": replace(quiet, correlation=value)},
                    LONG // 4,
                    1,
                )
            ]
        )[0, 1]
        for value in (0.0, 0.9)
    )
    assert abs(apart) < 0.1
    assert together > 0.3


def test_more_capacity_is_lost_by_day_than_by_night() -> None:
    flags = generate(SyntheticMarket(diurnal=0.9), LONG // 2, ["a"], 5)[0].ticks(600)
    lost = np.flatnonzero(flags[:-1] & ~flags[1:]) % 144
    assert (lost < 72).sum() > 1.3 * (lost >= 72).sum()


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


def test_traces_of_events_are_sampled_for_the_workers_of_the_job() -> None:
    """Four nodes, and in each fifth hour only two."""
    steps = [(18_000.0 * turn + at, nodes) for turn in range(200) for at, nodes in ((0.0, 4), (14_400.0, 2))]
    recorded = trace(*steps, end=200 * 18_000.0)
    for workers, share in ((2, 1.0), (4, 0.8)):
        market = fit([recorded], workers)
        assert market.gap == SyntheticMarket().gap
        assert generate(market, LONG, ["copy"], 1)[0].share() == pytest.approx(share, abs=0.05)


def test_traces_with_ticks_of_different_lengths_cannot_be_fitted() -> None:
    with pytest.raises(InvalidSpec, match="ticks: expected 1 or more"):
        generate(SyntheticMarket(), 0, ["a"], 1)
    of = of_ticks("a", np.array([True, False]), 600), of_ticks("b", np.array([True, False]), 300)
    with pytest.raises(InvalidSpec, match="expected ticks of one length, got 300 s in b; 600 s in a: resample them"):
        fit(of)
