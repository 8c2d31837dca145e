"""Whether one more start of an attempt would make a job miss its deadline.

Rules
 1. The slack is the time until the deadline that is needed neither for the steps that are not committed, at the
    measured pace, nor for one more start on the job's tier. The deadline is at risk without slack: the next loss of
    nodes, or the current wait, makes the job late.
 2. While the job trains, the slack counts from its newest commit: the training since then is work that the next commit
    shows. While it waits, each second is lost.
 3. Nothing is known while the work that is left is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from spotladder.core.durations import format_duration
from spotladder.core.facts import limits
from spotladder.core.facts.starts import start_overhead, start_reserve
from spotladder.core.facts.work import work_left
from spotladder.core.model import TERMINAL, Instant, JobSpec, JobState, Seconds, Stage

CONDITION = "DeadlineAtRisk"
"""The type of the condition of a job."""


@dataclass(frozen=True, slots=True)
class DeadlineRisk:
    """The remaining training time of a job that continues, and the slack of rule 1."""

    left: Seconds
    slack: Seconds

    @property
    def at_risk(self) -> bool:
        return self.slack < 0

    @property
    def reason(self) -> str:
        """The reason of the condition."""
        return "NoSlack" if self.at_risk else "InTime"

    @property
    def message(self) -> str:
        """What is left, in whole minutes; "" while the deadline is not at risk."""
        if not self.at_risk:
            return ""
        left = format_duration(60.0 * max(1, round(self.left / 60)))
        return f"about {left} of training are left until the deadline"


def deadline_risk(spec: JobSpec, state: JobState) -> DeadlineRisk | None:
    """The risk as of the state; None without a deadline, for a job that has ended, and while its work is unknown."""
    deadline, (_, left) = limits.deadline(spec), work_left(spec, state, state.progress)
    if deadline is None or left is None or state.stage in TERMINAL or not spec.tiers:
        return None
    tier = spec.tier(state.tier) or spec.tiers[0]
    start = start_reserve(spec, state, tier)
    needed = left + (start_overhead(spec, state, tier) if start is None else start)
    return DeadlineRisk(left, deadline - _counted_from(state) - needed)


def _counted_from(state: JobState) -> Instant:
    """The moment of rule 2."""
    ready_at = state.attempt.all_ready_at if state.attempt is not None else None
    if state.stage is not Stage.RUNNING or ready_at is None:
        return state.clock
    return max(ready_at, state.progress_at or ready_at)
