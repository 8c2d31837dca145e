"""The last run of a job beside the simulated ones."""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.accounting import HOUR
from spotladder.core.model import JobState
from spotladder.core.work import pace
from spotladder.display.figures import span
from spotladder.planner.plan import Question
from spotladder.planner.simulated import Forecast

COMPARABLE = 4.0
"""A run with more than so many times the work of the plan, or with less than such a part of it, is not compared."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A run of the job that has ended, in USD and hours, and how long its work took without interruptions, in hours.
    `shares` are those of the simulated runs that cost less and that ended sooner, None if the run had much less or much
    more work than they have."""

    reason: str
    cost: float
    hours: float
    work: float
    shares: tuple[float, float] | None

    def __str__(self) -> str:
        ran = f"the job has run before: ${self.cost:.2f} in {span(self.hours * HOUR)} ({self.reason}); "
        if self.shares is None:
            return f"{ran}not compared with the simulated runs, because its work took {span(self.work * HOUR)}"
        cheaper, faster = (f"{100 * share:.0f} %" for share in self.shares)
        return f"{ran}{cheaper} of the simulated runs cost less, {faster} end sooner"


def compared(own: Forecast, question: Question, run: JobState | None) -> Compared | None:
    """The job's last run beside the simulated ones; None if it has not ended, or if it has no price or start."""
    if run is None or run.ended_at is None or run.started_at is None or any(tier.unpriced for tier in run.tiers):
        return None
    hours = (run.ended_at - run.started_at) / HOUR
    work = (pace(question.spec, run) or 0.0) * (run.total or run.progress.step) / HOUR or hours
    shares = None
    if question.hours / COMPARABLE <= work <= question.hours * COMPARABLE:
        ends = () if own.hours is None else own.hours.values
        cheaper, faster = sum(cost < run.spent_usd for cost in own.cost.values), sum(end < hours for end in ends)
        shares = cheaper / own.runs, faster / own.runs
    return Compared(str(run.reason), run.spent_usd, hours, work, shares)
