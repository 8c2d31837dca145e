"""Searches for better settings of a job's tiers by simulation: order, maxFailures, provisionTimeout, commit interval.

 1. The cheapest orders of the spot tiers by the closed formulas, with the job's maxFailures and without limits.
 2. Every value of MAX_FAILURES, the same on all spot tiers.
 3. Every value of MAX_FAILURES, and of PROVISION_TIMEOUTS, on one spot tier after the other.
 4. The commit interval of `advice.interval`.

Each step begins with the best settings of the step before. Its candidates run on a few seeds; the best of them replaces
these settings if it is better by LEAST_SAVING there and better on more seeds, too. In the end the settings that were
found and the job as written run on all seeds of the forecast.

A candidate is better if more of its runs succeed or, with equally many, if their mean cost is lower. All candidates run
on the same seeds, and runs that do not reach a limit are shared (`Runs`). The few seeds, and the more, are those whose
runs as written are spread evenly over the range of the costs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

from spotladder.core.model import FOR_EVER, Seconds
from spotladder.planner.advice import cheapest_orders
from spotladder.planner.plan import Question, TierFacts
from spotladder.planner.runs import Runs
from spotladder.planner.simulated import Assumptions, Forecast, summed, with_tier, with_tiers
from spotladder.sim.world.run import SimulationOutcome

MAX_FAILURES = (FOR_EVER, *range(11))
"""Values of maxFailures that are tried; of equally good ones, the first."""

PROVISION_TIMEOUTS: tuple[Seconds, ...] = (300.0, 600.0, 1200.0, 2400.0, 4800.0)
"""Values of provisionTimeout that are tried on tiers whose requests may fail."""

ORDERS = 3
"""Maximum number of orders of the tiers that are tried beside the job's own."""

SEARCH_RUNS = 50
"""Runs of a candidate that is better on the first ones."""

SCREENING_RUNS = 6
"""Runs of every candidate."""

LEAST_SAVING = 0.01
"""Smallest saving, as a share of the cost, for which a setting is changed."""

LEAST_ERRORS = 2.0
"""Smallest saving, in standard errors of the difference, for which the settings are changed."""

TIMEOUT_FACTOR = 2.0
"""A provisionTimeout shorter than a node's start becomes this many times the start."""

MINUTE: Seconds = 60.0


@dataclass(frozen=True, slots=True)
class Tried:
    """The mean cost of some settings in USD and the share of the runs that succeed, over `runs` runs."""

    usd: float
    success: float
    runs: int


@dataclass(frozen=True, slots=True)
class Curves:
    """The settings beside the best ones that differ in one of them only. `orders` has the orders of the tiers by their
    names, `max_failures` each value on all spot tiers, ascending, and `provision_timeouts` each value in seconds of
    each tier whose requests may fail. Those of a job without spot tiers are empty."""

    orders: Mapping[tuple[str, ...], Tried]
    max_failures: Mapping[int, Tried]
    provision_timeouts: Mapping[str, Mapping[Seconds, Tried]]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Better settings: the tiers in their new order, and the commit interval in seconds, None if the job's own is kept.
    `before` and `after` are the forecasts of the job as written and of the proposal, over the same runs. `saving` is
    the mean difference of their cost in USD, and `error` its standard error. `candidates` is the number of settings
    that were tried."""

    tiers: tuple[TierFacts, ...]
    commit_interval: Seconds | None
    before: Forecast
    after: Forecast
    saving: float
    error: float
    candidates: int


@dataclass(frozen=True, slots=True)
class Advised:
    """The best settings that were found, None if the job's own are as good, and the curves with the other settings of
    these."""

    proposal: Proposal | None
    curves: Curves


@dataclass(frozen=True, slots=True)
class _Candidate:
    question: Question
    assumptions: Assumptions


class _Search:
    """The candidates that were tried, and the seeds on which they ran."""

    def __init__(self, runs: Runs, written: _Candidate, seeds: range) -> None:
        self._runs = runs
        own = runs.of(written.question, written.assumptions, seeds)
        by_cost = [seed for _cost, seed in sorted((one.cost, seed) for one, seed in zip(own, seeds, strict=True))]
        self._more = _spread(by_cost, SEARCH_RUNS)
        self._few = _spread(self._more, SCREENING_RUNS)
        self.tried = {written}

    def best(self, before: _Candidate, others: Iterable[_Candidate]) -> _Candidate:
        """The best of these if it is better than `before`, else that one."""
        found = list(others)
        self.tried.update(found)
        if not found:
            return before
        self._runs.prepare([(other.question, other.assumptions) for other in found], self._few)
        one = min(found, key=lambda other: _rank(self.screened(other)))
        for seeds, least in ((self._few, LEAST_SAVING), (self._more, 0.0)):
            if not _better(self._of(before, seeds), self._of(one, seeds), least):
                return before
        return one

    def screened(self, one: _Candidate) -> list[SimulationOutcome]:
        """The outcomes on the few seeds."""
        return self._of(one, self._few)

    def _of(self, one: _Candidate, seeds: Iterable[int]) -> list[SimulationOutcome]:
        return self._runs.of(one.question, one.assumptions, seeds)


def _spread(seeds: Sequence[int], number: int) -> list[int]:
    """So many of these seeds, evenly spaced; all of them if they are fewer."""
    step = max(1.0, len(seeds) / number)
    return [seeds[int((index + 0.5) * step)] for index in range(min(number, len(seeds)))]


def most_runs(question: Question, runs: int) -> int:
    """Upper limit of the runs that `advised` needs with so many seeds, beside those of the job as written."""
    few, more = min(runs, SCREENING_RUNS), min(runs, SEARCH_RUNS)
    values = [
        len(values)
        for field, values in (("max_failures", MAX_FAILURES), ("provision_timeout", PROVISION_TIMEOUTS))
        for _name in _tiers_to_change(question, field)
    ]
    steps = 3 + len(values)
    candidates = 2 * (1 + ORDERS) + len(MAX_FAILURES) + sum(values) + 1
    timeouts = len(PROVISION_TIMEOUTS) + 1
    curves = 1 + ORDERS + len(MAX_FAILURES) + timeouts * len(_tiers_to_change(question, "provision_timeout"))
    return (candidates + curves) * few + 2 * steps * (few + more) + runs


def advised(
    question: Question, assumptions: Assumptions, runs: Runs, seeds: range, commit_interval: Seconds | None = None
) -> Advised:
    """The best settings of this job, and the curves from which they follow.

    `seeds` are those of the forecast of the job as written. `commit_interval` is tried in place of the job's, in
    seconds.
    """
    written = _Candidate(question, assumptions)
    search = _Search(runs, written, seeds)
    best = _best(search, written, commit_interval)
    before, after = (runs.of(one.question, one.assumptions, seeds) for one in (written, best))
    saving, error = _difference(before, after)
    if not _better(before, after, LEAST_SAVING, LEAST_ERRORS * error):
        return Advised(None, _curves(search, written))
    interval = best.assumptions.commit_interval
    found = Proposal(
        best.question.tiers,
        None if interval == assumptions.commit_interval else interval,
        summed(question, before),
        summed(best.question, after),
        saving,
        error,
        len(search.tried),
    )
    return Advised(found, _curves(search, best))


def _best(search: _Search, written: _Candidate, commit_interval: Seconds | None) -> _Candidate:
    """The best settings on the seeds of the search."""
    best, assumptions = written, written.assumptions
    best = search.best(best, [replace(best, question=one) for one in _orders(best.question, assumptions)])
    best = search.best(best, [replace(best, question=one) for one in _limits(best.question).values()])
    for field, values in (("max_failures", MAX_FAILURES), ("provision_timeout", PROVISION_TIMEOUTS)):
        for name in _tiers_to_change(best.question, field):
            changes = _changes(best.question, name, field, values)
            best = search.best(best, [replace(best, question=one) for one in changes])
    if commit_interval is not None and commit_interval != assumptions.commit_interval:
        best = search.best(best, [replace(best, assumptions=replace(assumptions, commit_interval=commit_interval))])
    return best


def _rank(found: Sequence[SimulationOutcome]) -> tuple[int, float]:
    """The negated number of successful runs, and the mean cost in USD: lower is better."""
    return -sum(one.succeeded for one in found), fmean(one.cost for one in found)


def _difference(before: Sequence[SimulationOutcome], after: Sequence[SimulationOutcome]) -> tuple[float, float]:
    """The mean saving in USD over pairs of runs with the same seed, and its standard error."""
    savings = [one.cost - other.cost for one, other in zip(before, after, strict=True)]
    return fmean(savings), stdev(savings) / math.sqrt(len(savings)) if len(savings) > 1 else 0.0


def _better(
    before: Sequence[SimulationOutcome], after: Sequence[SimulationOutcome], share: float, least: float = 0.0
) -> bool:
    """Whether more runs succeed, or equally many that cost less, by more than this share of the cost and than `least`,
    in USD. Settings with which no run succeeds are not better."""
    (failed, usd), (failed_after, usd_after) = _rank(before), _rank(after)
    return failed_after < failed or (failed_after == failed < 0 and usd - usd_after > max(share * usd, least))


def _orders(question: Question, assumptions: Assumptions) -> list[Question]:
    """The orders of the tiers, each with the job's own values of maxFailures and without limits."""
    found: dict[tuple[TierFacts, ...], Question] = {}
    for order in [question.tiers, *cheapest_orders(question, ORDERS)]:
        for limit in (None, FOR_EVER):
            tiers = tuple(_startable(_limited(facts, limit), assumptions) for facts in order)
            found.setdefault(tiers, with_tiers(question, tiers))
    found.pop(question.tiers, None)
    return list(found.values())


def _limits(question: Question) -> dict[int, Question]:
    """The question with each value of maxFailures on all spot tiers."""
    return {limit: with_tiers(question, [_limited(facts, limit) for facts in question.tiers]) for limit in MAX_FAILURES}


def _limited(facts: TierFacts, limit: int | None) -> TierFacts:
    """The tier with this maxFailures if it is spot; None keeps its own."""
    if limit is None or not facts.spot or facts.tier.max_failures == limit:
        return facts
    return replace(facts, tier=replace(facts.tier, max_failures=limit))


def _startable(facts: TierFacts, assumptions: Assumptions) -> TierFacts:
    """The tier with a provisionTimeout in which a node can start."""
    ready = assumptions.ready_after if facts.ready_after is None else facts.ready_after
    if facts.tier.provision_timeout >= ready:
        return facts
    return facts.changed(provision_timeout=-(-TIMEOUT_FACTOR * ready // MINUTE) * MINUTE)


def _tiers_to_change(question: Question, field: str) -> list[str]:
    """The names of the spot tiers for which other values of this field may make a difference."""
    spot = [facts for facts in question.tiers if facts.spot and question.uses(facts)]
    if field == "provision_timeout":
        spot = [facts for facts in spot if _may_wait(facts)]
    elif len(spot) == 1:
        spot = []  # its values were tried with the orders
    return [facts.tier.name for facts in spot]


def _may_wait(facts: TierFacts) -> bool:
    """Whether a request for nodes of the tier may fail."""
    return bool(facts.traces or facts.unavailable or facts.closed) or facts.availability not in (None, 1.0)


def _changes(question: Question, name: str, field: str, values: Sequence[float]) -> Iterator[Question]:
    """The question with the other values of this field of the tier, without a provisionTimeout that is too short for
    the start of a node."""
    (facts,) = [facts for facts in question.tiers if facts.tier.name == name]
    least = 0.0 if field == "max_failures" else TIMEOUT_FACTOR * (facts.ready_after or 0.0)
    for value in values:
        if value != getattr(facts.tier, field) and (value >= least or value == FOR_EVER):
            yield with_tier(question, name, **{field: value})


def _curves(search: _Search, best: _Candidate) -> Curves:
    """The curves with the other settings of `best`."""

    def tried(question: Question) -> Tried:
        found = search.screened(replace(best, question=question))
        failed, usd = _rank(found)
        return Tried(usd, -failed / len(found), len(found))

    own = best.question
    if not any(facts.spot and own.uses(facts) for facts in own.tiers):
        return Curves({}, {}, {})
    orders = dict.fromkeys([own.tiers, *cheapest_orders(own, ORDERS)])
    limits = _limits(own)
    return Curves(
        {tuple(facts.tier.name for facts in order): tried(with_tiers(own, order)) for order in orders},
        {limit: tried(limits[limit]) for limit in (*MAX_FAILURES[1:], FOR_EVER)},
        {
            name: {value: tried(one) for value, one in _timeouts(own, name)}
            for name in _tiers_to_change(own, "provision_timeout")
        },
    )


def _timeouts(question: Question, name: str) -> list[tuple[Seconds, Question]]:
    """Each value of provisionTimeout of this tier, and the question with it, ascending."""
    found = [question, *_changes(question, name, "provision_timeout", PROVISION_TIMEOUTS)]
    index = [facts.tier.name for facts in question.tiers].index(name)
    return sorted(((one.tiers[index].tier.provision_timeout, one) for one in found), key=lambda entry: entry[0])
