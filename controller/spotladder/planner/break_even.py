"""How the estimate of the closed formulas changes with the loss rate, and the rate from which spot saves nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from spotladder.core.cost import Accounting
from spotladder.planner.plan import MOST, Choice, Question, choose, expect

FACTORS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""Multiples of the loss rates of all spot tiers."""

HIGHEST = 1e4
"""Highest multiple at which the break-even is searched."""


@dataclass(frozen=True, slots=True)
class AtRate:
    """The estimate of the job as written with the loss rates of all spot tiers multiplied by `factor`."""

    factor: float
    choice: Choice

    def saved(self, accounting: Accounting) -> float:
        """The saved share of the cost on demand; negative if spot costs more."""
        return self.choice.estimates[accounting].savings_fraction


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The estimates at several rates, and the multiple of the rates from which spot saves nothing; None if it saves at
    every rate up to HIGHEST, as a job does that soon falls back."""

    rows: tuple[AtRate, ...]
    factor: float | None


def break_even(question: Question, accounting: Accounting) -> BreakEven | None:
    """None if a loss rate is unknown, or if no spot tier loses nodes."""
    if not any(facts.spot and facts.evictions for facts in question.tiers) or expect(question) is None:
        return None
    return BreakEven(tuple(_rows(question)), _factor(question, accounting))


def _rows(question: Question) -> Iterator[AtRate]:
    for factor in FACTORS:
        row = _at(question, factor)
        if row is None:
            return
        yield row


def _at(question: Question, factor: float) -> AtRate | None:
    """The estimate at this multiple; None if it expects too many failures to be estimated."""
    tiers = tuple(
        replace(facts, evictions=(facts.evictions or 0.0) * factor) if facts.spot else facts for facts in question.tiers
    )
    scaled = replace(question, tiers=tiers)
    expected = expect(scaled)
    if expected is None or expected.failures > MOST:
        return None
    choice = choose(scaled)
    return None if choice is None else AtRate(factor, choice)


def _factor(question: Question, accounting: Accounting) -> float | None:
    """The multiple at which the saved share falls to 0, by bisection between the first two powers of two around it."""
    high = 1.0
    while (row := _at(question, high)) is not None and row.saved(accounting) > 0:
        high *= 2.0
        if high > HIGHEST:
            return None
    if row is None:
        return None
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        found = _at(question, middle)
        low, high = (middle, high) if found is not None and found.saved(accounting) > 0 else (low, middle)
    return high
