"""The simulated runs of the variants of a job, each simulated once.

A run depends on maxFailures of a tier only once the tier has more failures than that. So a variant has the same run as
another one that differs only in maxFailures of tiers that have not reached either limit. Most runs of a range of values
are shared: with one spot tier and three losses there are four different ones, whatever the range is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from spotladder.core.model import Exhausted
from spotladder.planner.parallel import LEAST_ITEMS, spread
from spotladder.planner.plan import Question, TierFacts
from spotladder.planner.simulated import Assumptions, outcomes, simulator, with_tiers
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

    def prepare(self, variants: Sequence[tuple[Question, Assumptions]], seeds: Sequence[int]) -> None:
        """Simulate the missing runs of these variants, as `of` would one variant after the other. Each seed has its
        own process, so that it takes less time. Raises InvalidSpec like `outcomes`."""
        entries = [(*self._family(*variant), simulator(*variant), variant[0].tiers) for variant in variants]

        def missing(seed: int) -> list[tuple[int, _Known]]:
            """The runs that are missing, each with the index of its variant."""
            made: list[tuple[int, _Known]] = []
            for index, (runs, limits, run, tiers) in enumerate(entries):
                shared = (one for other, one in made if entries[other][0] is runs)
                if not any(one.serves(limits) for one in chain(runs.get(seed, ()), shared)):
                    made.append((index, _known(limits, tiers, run(seed))))
            return made

        found = spread(missing, seeds, least=max(1, LEAST_ITEMS // max(1, len(entries))))
        for seed, made in zip(seeds, found, strict=True):
            for index, one in made:
                entries[index][0].setdefault(seed, []).append(one)
            self.done(len(made))
            self.simulated += len(made)

    def of(self, question: Question, assumptions: Assumptions, seeds: Iterable[int]) -> list[SimulationOutcome]:
        """One run for each seed. Raises InvalidSpec like `outcomes`."""
        runs, limits = self._family(question, assumptions)
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
            runs.setdefault(seed, []).append(_known(limits, question.tiers, outcome))
            self.simulated += 1
            found[seed] = outcome
        return [found[seed] for seed in wanted]

    def _family(self, question: Question, assumptions: Assumptions) -> tuple[dict[int, list[_Known]], tuple[int, ...]]:
        """The known runs that the variant may share, by seed, and its values of maxFailures."""
        shares = question.spec.exhausted is Exhausted.FAIL  # otherwise the failures of a tier are counted anew
        family = _without_limits(question) if shares else question
        limits = tuple(facts.tier.max_failures for facts in question.tiers)
        return self._known.setdefault((family, assumptions), {}), limits


def _known(limits: tuple[int, ...], tiers: Sequence[TierFacts], outcome: SimulationOutcome) -> _Known:
    return _Known(limits, tuple(outcome.tier_failures[facts.tier.name] for facts in tiers), outcome)


def _without_limits(question: Question) -> Question:
    """The question that all variants with other values of maxFailures share."""
    return with_tiers(question, [replace(facts, tier=replace(facts.tier, max_failures=0)) for facts in question.tiers])
