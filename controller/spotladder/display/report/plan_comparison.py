"""Compares a plan of a job with its run: what the simulated runs and the closed formulas expected, and what happened.

The plan is the data that `spotladder plan -o json` writes. Cost, time, failures and lost work are compared for the
whole job and for each tier. The lost work is the time in which steps were repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from spotladder.core.accounting import HOUR
from spotladder.core.model import TERMINAL, Instant, JobState
from spotladder.display.figures import NONE, money, span
from spotladder.display.report.facts import Facts
from spotladder.errors import InvalidSpec

COLUMNS = ("", "Plan, p50", "Plan, p10", "Plan, p90", "Plan, mean", "Formulas", "Happened")

STATISTICS = ("p50", "p10", "p90", "mean")
"""The statistics of the simulated runs, in the order of COLUMNS."""

NAMES = {"costUsd": "Cost", "hours": "Takes", "failures": "Failures", "lostWorkHours": "Lost work"}
TIER_NAMES = {**NAMES, "hours": "Time"}
"""Labels of the quantities of the job, and of those of a tier."""


@dataclass(frozen=True, slots=True)
class ComparedQuantity:
    """One quantity, in USD, hours or a number. `planned` has the statistics of the simulated runs that the plan
    contains; `formulas` is the value of the closed formulas and `happened` that of the run, both None if unknown."""

    key: str
    planned: Mapping[str, float]
    formulas: float | None
    happened: float | None

    @property
    def data(self) -> dict[str, float | None]:
        """For programs."""
        planned = {name: self.planned.get(name) for name in STATISTICS}
        return {**planned, "formulas": self.formulas, "happened": self.happened}

    @property
    def cells(self) -> list[str]:
        """For users, in the order of COLUMNS without the first one."""
        values = list(self.data.values())
        largest = max((value for value in values if value is not None), default=0.0)
        return [NONE if value is None else self._text(value, largest) for value in values]

    def _text(self, value: float, largest: float) -> str:
        if self.key == "costUsd":
            return money(value, largest)
        return f"{value:.1f}" if self.key == "failures" else span(value * HOUR)


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """The quantities of the job, and those of each tier by its name. `ended`: the run has ended."""

    job: tuple[ComparedQuantity, ...]
    tiers: Mapping[str, tuple[ComparedQuantity, ...]]
    ended: bool

    @property
    def title(self) -> str:
        """The heading of the table."""
        return "The plan and the run" + ("" if self.ended else ", which has not ended")

    def rows(self) -> Iterator[list[str]]:
        """The rows of the table, in the order of COLUMNS."""
        for one in self.job:
            yield [NAMES[one.key], *one.cells]
        for tier, quantities in self.tiers.items():
            for one in quantities:
                yield [f"{TIER_NAMES[one.key]} on {tier}", *one.cells]

    def data(self) -> dict[str, Any]:
        """For programs."""
        tiers = [{"name": tier, **{one.key: one.data for one in found}} for tier, found in self.tiers.items()]
        return {**{one.key: one.data for one in self.job}, "tiers": tiers}


def compare(plan: Mapping[str, Any], state: JobState, now: Instant, facts: Facts | None = None) -> PlanComparison:
    """The plan beside the run of this state, until now if it has not ended. The lost work is unknown without the facts
    of the run. Raises InvalidSpec for a damaged plan."""
    try:
        simulated = plan["simulation"] or {}
        written = next((one for one in plan["choices"] if one["maxFailures"] is None), None)
        formulas = written or {"totalHours": None, "expectedFailures": None, "accountings": {}}
        usd = formulas["accountings"].get(plan.get("accounting"), {}).get("costUsd")
        spent = None if any(tier.unpriced for tier in state.tiers) else state.spent_usd
        lost = _lost_work(facts)
        job = (
            _quantity("costUsd", simulated.get("costUsd"), usd, spent),
            _quantity("hours", simulated.get("finishHours"), formulas["totalHours"], _hours(state, now)),
            _counted("failures", simulated, "losses", formulas["expectedFailures"], float(state.failures)),
            _counted("lostWorkHours", simulated, "recomputedHours", None, None if lost is None else sum(lost.values())),
        )
        forecasts = {tier["name"]: tier for tier in simulated.get("tiers") or ()}
        tiers = {
            tier["name"]: _tier(tier, forecasts.get(tier["name"], {}), plan["workers"], state, lost)
            for tier in plan.get("tiers") or ()
        }
        return PlanComparison(job, tiers, state.stage in TERMINAL)
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidSpec(f"is not a plan of this version ({error!r}): write it again", path="--plan") from None


def _tier(
    tier: Mapping[str, Any],
    simulated: Mapping[str, Any],
    workers: int,
    state: JobState,
    lost: Mapping[str, float] | None,
) -> tuple[ComparedQuantity, ...]:
    """The quantities of a tier of the plan. The closed formulas have no cost of one tier: they share the overhead."""
    name, hours, rate = tier["name"], tier["expectedHours"], tier["evictionsPerNodeHour"]
    record = state.record(name)
    return (
        _quantity("costUsd", simulated.get("costUsd"), None, None if record.unpriced else record.cost),
        _counted("hours", simulated, "hours", hours, record.node_seconds / workers / HOUR),
        _counted(
            "failures",
            simulated,
            "losses",
            None if hours is None or rate is None else hours * workers * rate,
            float(record.failures),
        ),
        _counted("lostWorkHours", simulated, "recomputedHours", None, None if lost is None else lost.get(name, 0.0)),
    )


def _quantity(
    key: str, planned: Mapping[str, Any] | None, formulas: float | None, happened: float | None
) -> ComparedQuantity:
    known = {name: float(planned[name]) for name in STATISTICS if planned and planned.get(name) is not None}
    return ComparedQuantity(key, known, formulas, happened)


def _counted(
    key: str, simulated: Mapping[str, Any], field: str, formulas: float | None, happened: float | None
) -> ComparedQuantity:
    """A quantity whose mean and percentiles are two fields of the plan."""
    return _quantity(
        key, {"mean": simulated.get(field), **simulated.get(f"{field}Percentiles", {})}, formulas, happened
    )


def _lost_work(facts: Facts | None) -> Mapping[str, float] | None:
    """Hours of repeated work by the tier that lost it; None if unknown."""
    if facts is None or facts.recomputed is None:
        return None
    hours: dict[str, float] = {}
    for attempt in facts.attempts:
        hours[attempt.tier] = hours.get(attempt.tier, 0.0) + attempt.lost_work / HOUR
    return hours


def _hours(state: JobState, now: Instant) -> float | None:
    """From the first attempt to the end of the job, or until now."""
    began = state.started_at or min((attempt.started_at for attempt in state.history), default=None)
    if began is None:
        return None
    ended = state.ended_at or (state.history[-1].ended_at if state.attempt is None and state.history else now)
    return max(0.0, ended - began) / HOUR
