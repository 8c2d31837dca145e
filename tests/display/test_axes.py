"""Tick labels and marks of the charts do not overlap."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spotladder.display.report import charts
from spotladder.display.report.axes import apart, decades
from spotladder.display.report.facts import RunFacts
from spotladder.display.report.page import page
from spotladder.display.report.timeline import MARK_WIDTH, thinned, timeline

LINE = 12
"""Height of a label, in the charts' pixels."""


@given(st.floats(-300, 299), st.floats(1.31, 300))
def test_labels_of_a_logarithmic_axis_do_not_overlap(exponent: float, size: float) -> None:
    low, high = 10.0**exponent, 10.0 ** min(300.0, exponent + size)
    ticks = decades(low, high)
    places = [math.log10(each / low) / math.log10(high / low) * 190 for each in ticks]
    assert ticks
    assert all(after - before >= LINE for before, after in pairwise(places))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.14, 3.0, [0.2, 0.5, 1.0, 2.0]),
        (0.001, 1.0, [0.001, 0.01, 0.1, 1.0]),
        (1e-20, 1.0, [1e-18, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1.0]),
    ],
)
def test_a_logarithmic_axis_has_round_tick_values(low: float, high: float, ticks: list[float]) -> None:
    assert decades(low, high) == ticks


def test_overlapping_marks_are_merged() -> None:
    assert apart([(30.0, 1.0), (0.0, 0.0), (4.0, 0.0), (5.0, 1.0), (12.0, 0.0)], 10) == [
        (0.0, 0.0, 2),
        (5.0, 1.0, 1),
        (12.0, 0.0, 1),
        (30.0, 1.0, 1),
    ]


@pytest.mark.parametrize("width", [900, 360])
def test_simultaneous_failures_are_one_mark_with_their_count(digits: RunFacts, width: int) -> None:
    first = digits.evictions[0]
    twice = replace(digits, evictions=(*digits.evictions, replace(first, what="another", at=first.at + 0.1)))
    drawn = str(timeline(twice, width))
    assert drawn.count('class="eviction"') == len(digits.evictions)
    assert ">2×<" in drawn
    assert "lost another at" in drawn
    paths = re.findall(r'<path d="M([-\d.]+),([-\d.]+)[^"]*" class="(?:eviction|notice)"', drawn)
    places = [(float(x), float(y)) for x, y in paths]
    assert len(places) == len(digits.evictions) + len(digits.notices)
    assert all(math.dist(one, other) >= MARK_WIDTH for one, other in combinations(places, 2))


def test_axes_have_titles_with_units(digits: RunFacts) -> None:
    for width in (900, 360):
        assert "time since the start (h:mm:ss)" in str(timeline(digits, width))
        assert ">step<" in str(charts.loss(digits, width))
        assert re.search(r">loss( \(log\))?<", str(charts.loss(digits, width)))
        assert ">USD<" in str(charts.cost(digits, width))
    assert "number of the attempt" in page(digits)


def test_each_attempt_has_its_bars_and_its_number_if_there_is_room(digits: RunFacts) -> None:
    drawn = str(timeline(digits, 900))
    for name, spans in (("waiting", 4), ("work", sum(len(each.work) for each in digits.attempts))):
        assert len(re.findall(f'class="{name} (?:spot|on-demand)"', drawn)) == spans
    assert re.findall(r'class="number(?: open)?">(\d)<', drawn) == ["1", "2", "3", "4"]
    assert drawn.count('class="fall"') == 2, "moves to other tiers"
    assert re.findall(r'class="number(?: open)?">(\d)<', str(timeline(digits, 76))) == ["4"]


def test_events_on_a_tier_that_the_spec_no_longer_has_are_left_out(digits: RunFacts) -> None:
    drawn = str(timeline(replace(digits, spec=replace(digits.spec, tiers=digits.spec.tiers[:1])), 900))
    assert drawn.count('class="lane"') == 1
    assert "on-demand" not in drawn
    assert 'class="fall"' not in drawn


def test_a_long_curve_is_thinned_and_keeps_its_drops() -> None:
    steps = [(float(at), at if at < 4001 else at - 700) for at in range(9000)]
    assert len(thinned(steps)) < 510
    assert {steps[0], steps[4000], steps[4001], steps[-1]} <= set(thinned(steps))
    assert thinned([]) == []
