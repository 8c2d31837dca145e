"""Suggestions for a job: `maxFailures` of its spot tiers, and the interval between commits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, stdev

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import FOR_EVER, Seconds
from spotladder.planner.parallel import spread
from spotladder.planner.plan import PlanInput, between_failures, first_lossy
from spotladder.planner.simulated import Assumptions, simulator, with_max_failures
from spotladder.sim.world.run import SimulationOutcome

LIMITS = (0, 1, 2, 3, 5, 8, 13, FOR_EVER)
"""Values of maxFailures that are simulated on all spot tiers."""

LIMIT_RUNS = 25
"""Runs of each of these values."""

LEAST_ERRORS = 2.0
"""Smallest saving that is suggested, in standard errors of its mean."""


@dataclass(frozen=True, slots=True)
class LimitAdvice:
    """A value of maxFailures for all spot tiers with which more runs succeed, or as many that cost less. `usd` and
    `success` are the mean cost in USD and the share of the runs that succeed, each with the job's own values first.
    `saving` is the mean difference of the cost in USD over `runs` pairs of runs, and `error` its standard error."""

    max_failures: int
    usd: tuple[float, float]
    success: tuple[float, float]
    saving: float
    error: float
    runs: int


def max_failures(
    given: PlanInput, assumptions: Assumptions, own: Sequence[SimulationOutcome], seeds: Sequence[int]
) -> LimitAdvice | None:
    """The best of LIMITS; None if none is better than the job's own values. `own` are the runs of the job as written,
    on these seeds."""
    before, seeds = list(own[:LIMIT_RUNS]), seeds[:LIMIT_RUNS]
    if not any(facts.spot for facts in given.tiers) or not before:
        return None
    tried = with_limits(given, assumptions, seeds)
    best = min(tried, key=lambda limit: _rank(tried[limit]))
    after = tried[best]
    savings = [one.cost - other.cost for one, other in zip(before, after, strict=True)]
    saving, error = fmean(savings), stdev(savings) / math.sqrt(len(savings)) if len(savings) > 1 else 0.0
    (failed, usd), (failed_after, usd_after) = _rank(before), _rank(after)
    if failed_after > failed or (failed_after == failed and saving <= LEAST_ERRORS * error):
        return None
    success = (-failed / len(before), -failed_after / len(after))
    return LimitAdvice(best, (usd, usd_after), success, saving, error, len(before))


def with_limits(given: PlanInput, assumptions: Assumptions, seeds: Sequence[int]) -> dict[int, list[SimulationOutcome]]:
    """The runs of these seeds with each of LIMITS. A run that has no more losses on a tier than a limit is the same
    with all higher ones."""
    runs = {limit: simulator(with_max_failures(given, limit), assumptions) for limit in LIMITS}

    def of_seed(seed: int) -> list[SimulationOutcome]:
        found = [runs[LIMITS[0]](seed)]
        for lower, limit in pairwise(LIMITS):
            losses = Counter(one.loss.tier for one in found[-1].losses)
            found.append(runs[limit](seed) if max(losses.values(), default=0) > lower else found[-1])
        return found

    return dict(zip(LIMITS, map(list, zip(*spread(of_seed, seeds), strict=True)), strict=True))


def _rank(found: Sequence[SimulationOutcome]) -> tuple[int, float]:
    """The negated number of successful runs, and the mean cost in USD: lower is better."""
    return -sum(one.succeeded for one in found), fmean(one.cost for one in found)


@dataclass(frozen=True, slots=True)
class IntervalAdvice:
    """The interval between commits that loses the least time, √(2·Tf·Ts) by J. W. Young (1974), in seconds, for the
    mean loss rate of the first spot tier, and the share of the time that commits and lost work take with it and with
    the interval of the job."""

    interval: Seconds
    share: float
    own_share: float | None


def interval(given: PlanInput, commit_time: Seconds) -> IntervalAdvice | None:
    """The suggested interval; None if no spot tier has a known loss rate, or if commits take no time."""
    facts = first_lossy(given)
    if facts is None or commit_time <= 0:
        return None
    between = between_failures(given) * HOUR
    best = math.sqrt(2.0 * between * commit_time)

    def share(seconds: Seconds) -> float:
        return commit_time / seconds + seconds / (2.0 * between)

    own = None if given.interval is None else share(given.interval)
    return IntervalAdvice(best, share(best), own)
