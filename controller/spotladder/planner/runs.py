"""The simulated runs of the variants of a job, each simulated once.

A run depends on maxFailures of a tier only once the tier has more failures than that. So a variant has the same run as
another one that differs only in maxFailures of tiers that have not reached either limit. Most runs of a range of values
are shared: with one spot tier and three losses there are four different ones, whatever the range is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spotladder.core.model import Exhausted
from spotladder.planner.plan import Question
from spotladder.planner.simulated import Assumptions, outcomes, with_tiers
from spotladder.sim.world.run import SimulationOutcome


class _Known(NamedTuple):
    limits: tuple[int, ...]
    failures: tuple[int, ...]
    outcome: SimulationOutcome

    def serves(self, limits: tuple[int, ...]) -> bool:
        """Whether the run is that of these limits, too."""
        return all(
            asked == own or (not _exceeded(own, failures) and not _exceeded(asked, failures))
            for own, failures, asked in zip(self.limits, self.failures, limits, strict=True)
        )


def _exceeded(limit: int, failures: int) -> bool:
    return 0 <= limit < failures


@dataclass
class Runs:
    """The runs that are known. `done` is called with the number of runs that a variant has got, whether they were
    simulated or are shared with another one. `simulated` counts those that were simulated."""

    done: Callable[[int], None] = lambda _runs: None
    simulated: int = 0
    _known: dict[tuple[Question, Assumptions], dict[int, list[_Known]]] = field(default_factory=dict)

    def of(self, question: Question, assumptions: Assumptions, seeds: Iterable[int]) -> list[SimulationOutcome]:
        """One run for each seed. Raises InvalidSpec like `outcomes`."""
        limits = tuple(facts.tier.max_failures for facts in question.tiers)
        shares = question.spec.exhausted is Exhausted.FAIL  # otherwise the failures of a tier are counted anew
        family = _without_limits(question) if shares else question
        runs = self._known.setdefault((family, assumptions), {})
        wanted, missing, shared = list(seeds), [], 0
        found: dict[int, SimulationOutcome] = {}
        for seed in wanted:
            one = next((one for one in runs.get(seed, ()) if one.serves(limits)), None)
            if one is None:
                missing.append(seed)
            else:
                found[seed] = one.outcome
                shared += one.limits != limits
        self.done(shared)
        for seed, outcome in zip(missing, outcomes(question, assumptions, missing, self.done), strict=True):
            failures = tuple(outcome.tier_failures[facts.tier.name] for facts in question.tiers)
            runs.setdefault(seed, []).append(_Known(limits, failures, outcome))
            self.simulated += 1
            found[seed] = outcome
        return [found[seed] for seed in wanted]


def _without_limits(question: Question) -> Question:
    """The question that all variants with other values of maxFailures share."""
    return with_tiers(question, [replace(facts, tier=replace(facts.tier, max_failures=0)) for facts in question.tiers])
