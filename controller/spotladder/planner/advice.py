"""Suggestions for a job: the order of its tiers, and the interval between commits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

from spotladder.core.accounting import HOUR
from spotladder.core.cost import Accounting
from spotladder.core.model import Seconds
from spotladder.planner.plan import Question, TierFacts, between_failures, choose, first_lossy
from spotladder.planner.simulated import with_tiers
from spotladder.planner.tier_capacity import losses_by_age

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
    """The interval for the mean loss rate of the first spot tier, its curve over the age of the capacity, the data from
    which the shape of that curve follows, and the share of the time that commits and lost work take with the job's
    interval and with the suggested one."""

    interval: Seconds
    curve: tuple[IntervalAt, ...]
    source: str
    share: float
    own_share: float | None


def interval(question: Question, commit_time: Seconds) -> IntervalAdvice | None:
    """None if the job has no spot tier with a known loss rate, or if commits take no time."""
    facts = first_lossy(question)
    if facts is None or commit_time <= 0:
        return None
    between = between_failures(question) * HOUR
    best = math.sqrt(2.0 * between * commit_time)

    def share(seconds: Seconds) -> float:
        return commit_time / seconds + seconds / (2.0 * between)

    losses = losses_by_age(facts, question.spec.workers)
    curve = tuple(
        IntervalAt(age * between, between / rate, math.sqrt(2.0 * between / rate * commit_time))
        for age, rate in zip(losses.ages, losses.rates, strict=True)
    )
    own = None if question.interval is None else share(question.interval)
    return IntervalAdvice(best, curve, losses.source, share(best), own)
