"""Suggestions for a job: the order of its tiers, and the interval between commits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

from spotladder.core.accounting import HOUR
from spotladder.core.cost import Accounting
from spotladder.core.model import Seconds
from spotladder.planner.plan import Question, TierFacts, between_failures, choose
from spotladder.planner.simulated import with_tiers
from spotladder.sim.synthetic import AGES, SyntheticMarket

MOST_SPOT_TIERS = 5
"""Maximum number of spot tiers whose order is advised: every permutation of them is estimated."""


def cheapest_orders(question: Question, number: int) -> list[tuple[TierFacts, ...]]:
    """A limited number of orders of the tiers, cheapest first by the closed formulas; the spot tiers come first, and
    the tiers that the job can never use last."""
    return [order for _usd, order in _orders(question)[:number]]


def _orders(question: Question) -> list[tuple[float, tuple[TierFacts, ...]]]:
    """The cost in USD of each order of the spot tiers whose cost is known, cheapest first."""
    used = [facts for facts in question.tiers if question.uses(facts)]
    unused = [facts for facts in question.tiers if not question.uses(facts)]
    spot = [facts for facts in used if facts.spot]
    others = [facts for facts in used if not facts.spot]
    if not 0 < len(spot) <= MOST_SPOT_TIERS:
        return []
    orders = [(*order, *others, *unused) for order in permutations(spot)]
    found = [(usd, order) for order in orders if (usd := _usd(with_tiers(question, order))) is not None]
    return sorted(found, key=lambda entry: entry[0])


def _usd(question: Question) -> float | None:
    choice = choose(question)
    if choice is None or choice.usd is None or choice.expected.left > 0:
        return None
    return choice.usd[Accounting.BLENDED]


@dataclass(frozen=True, slots=True)
class IntervalAt:
    """For capacity of at least this age in seconds: the mean time until a loss, and the interval between commits that
    loses the least time, √(2·Tf·Ts) by J. W. Young (1974), both in seconds."""

    age: Seconds
    between_losses: Seconds
    interval: Seconds


@dataclass(frozen=True, slots=True)
class IntervalAdvice:
    """The interval for the mean loss rate of the first spot tier, its curve over the age of the capacity, and the share
    of the time that commits and lost work take with the job's interval and with the suggested one."""

    interval: Seconds
    curve: tuple[IntervalAt, ...]
    share: float
    own_share: float | None


def interval(question: Question, commit_time: Seconds) -> IntervalAdvice | None:
    """None if the job has no spot tier with a known loss rate, or if commits take no time."""
    between = between_failures(question) * HOUR
    if not math.isfinite(between) or commit_time <= 0:
        return None
    best = math.sqrt(2.0 * between * commit_time)

    def share(seconds: Seconds) -> float:
        return commit_time / seconds + seconds / (2.0 * between)

    rates = [-math.log1p(-chance) for chance in SyntheticMarket().lost]
    scale = between / _mean(rates)
    ages = zip((0, *AGES), rates, strict=True)
    curve = tuple(
        IntervalAt(age * scale, scale / rate, math.sqrt(2.0 * scale / rate * commit_time)) for age, rate in ages
    )
    own = None if question.interval is None else share(question.interval)
    return IntervalAdvice(best, curve, share(best), own)


def _mean(rates: list[float]) -> float:
    """Mean length in ticks of a spell with these rates by age class."""
    alive, total = 1.0, 0.0
    for first, end, rate in zip((0, *AGES), (*AGES, math.inf), rates, strict=True):
        left = alive * math.exp(-rate * (end - first))
        total += (alive - left) / rate
        alive = left
    return total
