"""Policies compared on the same capacity, seed by seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.display.figures import NONE, numbered, span
from spotladder.planner.plan import PlanInput
from spotladder.planner.recording import Recording
from spotladder.planner.simulated import Assumptions, Forecast, expected_uninterrupted_usd, outcomes, summed
from spotladder.sim.world.run import SimulationOutcome

COLUMNS = ("Policy", "Succeeded", "Cost", "p90", "Saved", "Ends after", "Losses", "Recomputed", "Starts")


@dataclass(frozen=True, slots=True)
class PolicyRuns:
    """The runs of one policy, one for each seed. `on_demand_usd` is the cost of the work on demand without
    interruptions; None without an on-demand price."""

    policy: str
    outcomes: tuple[SimulationOutcome, ...]
    forecast: Forecast
    on_demand_usd: float | None

    @property
    def succeeded(self) -> int:
        """The number of runs that ended with success."""
        return sum(one.succeeded for one in self.outcomes)


def compare(
    given: PlanInput,
    assumptions: Assumptions,
    policies: Sequence[str],
    seeds: Sequence[int],
    done: Callable[[int], None] = lambda _runs: None,
    *,
    recording: Recording | None = None,
) -> list[PolicyRuns]:
    """Every policy on every seed: for one seed the capacity is the same under every policy. `done` is called with the
    numbers of runs that have ended. Raises InvalidSpec and StoreUnavailable, as `outcomes`."""
    usd, found = expected_uninterrupted_usd(given, assumptions), []
    for name in policies:
        runs = outcomes(replace(given, policy=name), assumptions, seeds, done, recording=recording)
        found.append(PolicyRuns(name, tuple(runs), summed(given, runs), usd))
    return found


def title(given: PlanInput, assumptions: Assumptions) -> str:
    """A description of the comparison in one sentence."""
    work = f"{given.hours:.10g} h of work on {numbered(given.spec.workers, 'node')}"
    usd = expected_uninterrupted_usd(given, assumptions)
    return work if usd is None else f"{work}; on demand without interruptions: ${usd:.2f}"


def rows(found: Sequence[PolicyRuns]) -> list[tuple[str, ...]]:
    """One row for each policy, in the order of `COLUMNS`."""
    return [
        (
            one.policy,
            f"{one.succeeded} of {len(one.outcomes)}",
            f"${one.forecast.cost.mean:.2f}",
            f"${one.forecast.cost.at[90]:.2f}",
            _saved(one),
            NONE if one.forecast.hours is None else span(one.forecast.hours.mean * HOUR),
            f"{one.forecast.losses.mean:.1f}",
            span(one.forecast.recomputed.mean * HOUR),
            span(one.forecast.overhead * HOUR),
        )
        for one in found
    ]


def _saved(one: PolicyRuns) -> str:
    if not one.on_demand_usd or not one.succeeded:
        return NONE
    return f"{100 * (1 - one.forecast.cost.mean / one.on_demand_usd):.1f} %".replace("-", "−")


def failures(found: Sequence[PolicyRuns]) -> list[str]:
    """For each policy with failed runs, a sentence with the reasons, and one for runs that reached their limit."""
    sentences = []
    for one in found:
        reasons = sorted({str(run.reason) for run in one.outcomes if not run.succeeded and run.ended})
        if reasons:
            sentences.append(f"{one.policy}: runs without success ended with {', '.join(reasons)}")
        if longest := max((run.finished for run in one.outcomes if not run.ended), default=0.0):
            sentences.append(f"{one.policy}: runs without an end were stopped after {span(longest)}")
    return sentences
