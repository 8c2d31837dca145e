"""The loss rate from which spot saves nothing, by the closed formulas."""

from __future__ import annotations

import math
from dataclasses import replace

from spotladder.errors import InvalidSpec
from spotladder.planner.plan import PlanInput, estimated

HIGHEST = 1e4
"""Highest multiple at which the break-even is searched."""


def break_even(given: PlanInput) -> float | None:
    """The multiple of the loss rates of all spot tiers from which the job as written saves nothing; infinite if it
    saves at every rate up to HIGHEST, as a job does that soon falls back. None if a loss rate is unknown, if no spot
    tier loses nodes, or if no rate can be estimated."""
    rates = [facts.known.evictions for facts in given.tiers if facts.spot]
    if None in rates or not any(rates):
        return None
    high = 1.0  # Bisection between the first two powers of two around it.
    while (saves := _saves(given, high)) is True:
        high *= 2.0
        if high > HIGHEST:
            return math.inf
    if saves is None:
        return None
    low = 0.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if _saves(given, middle) else (low, middle)
    return high


def _saves(given: PlanInput, factor: float) -> bool | None:
    """Whether spot saves at this multiple; None if too many failures are expected."""
    tiers = tuple(
        replace(facts, known=replace(facts.known, evictions=(facts.known.evictions or 0.0) * factor))
        if facts.spot
        else facts
        for facts in given.tiers
    )
    try:
        found = estimated(replace(given, tiers=tiers))
    except InvalidSpec:
        return None
    return None if found is None else found.cost.savings_fraction > 0
