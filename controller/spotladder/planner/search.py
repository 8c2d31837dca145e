"""Searches for better settings of a job's tiers by simulation: their order, maxFailures, and the commit interval.

 1. Candidates combine the cheapest orders by the closed formulas with a few values of maxFailures on all spot tiers.
 2. Every candidate runs on a few seeds; the best ones, and the job as written, run on more seeds.
 3. The best candidate is tried with the commit interval of `advice.interval`, on more seeds if it is better on a few.

A candidate is better if more of its runs succeed or, with equally many, if their mean cost is lower. All candidates run
on the same seeds, so that a few runs show the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from spotladder.core.model import FOR_EVER, Seconds
from spotladder.planner.advice import cheapest_orders
from spotladder.planner.plan import Question, TierFacts
from spotladder.planner.simulated import Assumptions, Forecast, outcomes, summed, with_tiers
from spotladder.sim.world.run import SimulationOutcome

MAX_FAILURES = (0, 3, FOR_EVER)
"""Values of maxFailures that are tried on the spot tiers."""

ORDERS = 1
"""Maximum number of orders of the tiers that are tried beside the job's own."""

SCREENING_RUNS = 5
"""Runs of every candidate."""

FINALISTS = 2
"""Number of candidates that are run again."""

FINAL_RUNS = 16
"""Runs of the finalists and of the job as written."""

LEAST_SAVING = 0.01
"""Smallest saving, as a share of the cost, for which the settings are changed."""

TIMEOUT_FACTOR = 2.0
"""A provisionTimeout shorter than a node's start becomes this many times the start."""

MINUTE: Seconds = 60.0


@dataclass(frozen=True, slots=True)
class Proposal:
    """Better settings: the tiers in their new order, and the commit interval in seconds, None if the job's own is kept.
    `before` and `after` are the forecasts of the job as written and of the proposal, over the same runs."""

    tiers: tuple[TierFacts, ...]
    commit_interval: Seconds | None
    before: Forecast
    after: Forecast


@dataclass(frozen=True, slots=True)
class _Candidate:
    question: Question
    assumptions: Assumptions

    def run(self, first: int, runs: int) -> list[SimulationOutcome]:
        return outcomes(self.question, self.assumptions, range(first, first + runs))


def proposal(
    question: Question,
    assumptions: Assumptions,
    own: Sequence[SimulationOutcome],
    seed: int,
    commit_interval: Seconds | None = None,
) -> Proposal | None:
    """The best settings that were found; None if the job's own are as good.

    `own` are the outcomes of the job as written for the seeds from `seed` on. `commit_interval` is tried in place of
    the job's, in seconds.
    """
    runs = min(FINAL_RUNS, len(own))
    screened = min(SCREENING_RUNS, runs)
    written = _Candidate(question, assumptions)
    candidates = [_Candidate(one, assumptions) for one in _variants(question, assumptions, own)]
    tried = [(one, one.run(seed, screened)) for one in candidates]
    tried.sort(key=lambda entry: _rank(entry[1]))
    finals = [(one, found + one.run(seed + screened, runs - screened)) for one, found in tried[:FINALISTS]]
    best, results = min([(written, list(own[:runs])), *finals], key=lambda entry: _rank(entry[1]))
    interval = None
    if commit_interval is not None and commit_interval != assumptions.commit_interval:
        other = _Candidate(best.question, replace(assumptions, commit_interval=commit_interval))
        found = other.run(seed, screened)
        if _rank(found) < _rank(results[:screened]):
            found += other.run(seed + screened, runs - screened)
            if _rank(found) < _rank(results):
                best, results, interval = other, found, commit_interval
    if best is written or not _worthwhile(own[:runs], results):
        return None
    return Proposal(best.question.tiers, interval, summed(question, own[:runs]), summed(best.question, results))


def _rank(found: Sequence[SimulationOutcome]) -> tuple[int, float]:
    """The negated number of successful runs, and the mean cost in USD: lower is better."""
    return -sum(one.succeeded for one in found), fmean(one.cost for one in found)


def _worthwhile(before: Sequence[SimulationOutcome], after: Sequence[SimulationOutcome]) -> bool:
    """Whether more runs succeed, or those that do cost less. Settings with which none succeeds are no advice."""
    (failed, cost), (failed_after, cost_after) = _rank(before), _rank(after)
    return failed_after < failed or (failed_after < 0 and cost_after < cost * (1 - LEAST_SAVING))


def _variants(question: Question, assumptions: Assumptions, own: Sequence[SimulationOutcome]) -> list[Question]:
    """The candidates apart from the job as written, without those that would run like another one."""
    most = max((one.evictions for one in own), default=0)
    found: dict[tuple[tuple[str, int, Seconds], ...], Question] = {}
    for order in [question.tiers, *cheapest_orders(question, ORDERS)]:
        for limit in (None, *MAX_FAILURES):
            if limit is not None and limit >= most:
                continue  # no run had so many evictions: the result is that of an unlimited tier
            tiers = tuple(_changed(facts, limit, assumptions) for facts in order)
            key = tuple((one.tier.name, one.tier.max_failures, one.tier.provision_timeout) for one in tiers)
            found.setdefault(key, with_tiers(question, tiers))
    as_written = tuple((one.tier.name, one.tier.max_failures, one.tier.provision_timeout) for one in question.tiers)
    found.pop(as_written, None)
    return list(found.values())


def _changed(facts: TierFacts, limit: int | None, assumptions: Assumptions) -> TierFacts:
    """The tier with this maxFailures if it is spot, and with a provisionTimeout in which a node can start."""
    tier = facts.tier
    if facts.spot and limit is not None:
        tier = replace(tier, max_failures=limit)
    ready = assumptions.ready_after if facts.ready_after is None else facts.ready_after
    if tier.provision_timeout < ready:
        minutes = -(-TIMEOUT_FACTOR * ready // MINUTE)
        tier = replace(tier, provision_timeout=minutes * MINUTE)
    return replace(facts, tier=tier)
