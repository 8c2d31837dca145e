"""The limits of a tier and of the whole job: whether one is reached, and the message that says so."""

from __future__ import annotations

from spotladder.core.durations import format_duration
from spotladder.core.history.losses import exceeded
from spotladder.core.model import Instant, JobSpec, Stage
from spotladder.core.reasons import Reason
from spotladder.core.situation import Situation


def over_tier_limit(situation: Situation) -> bool:
    """Whether the job's tier has had more failures than allowed."""
    tier = situation.tier
    return tier is not None and exceeded(situation.state.record(tier.name), tier.max_failures)


def over_backoff_limit(situation: Situation) -> bool:
    """Whether the job has had more failures than allowed over all tiers."""
    return situation.spec.backoff_limit is not None and situation.state.failures > situation.spec.backoff_limit


def tier_failures(situation: Situation) -> str:
    """The number of failures of the job's tier, for a message."""
    name = situation.state.tier
    allowed = situation.tier.max_failures if situation.tier else 0
    return f"{_times(situation.state.record(name).failures)} on {name}, {allowed} tolerated"


def all_failures(situation: Situation) -> str:
    """The number of failures of the job, for a message."""
    return f"{_times(situation.state.failures)} over all tiers, {situation.spec.backoff_limit} tolerated"


def deadline(spec: JobSpec) -> Instant | None:
    """The job's deadline: the limit that applies first."""
    ends = [] if spec.deadline is None else [spec.deadline]
    if spec.max_duration is not None:
        ends.append(spec.submitted_at + spec.max_duration)
    return min(ends, default=None)


def reached(situation: Situation) -> tuple[Reason, str] | None:
    """The reached limit of the whole job, as a reason with its message."""
    spec, state, progress = situation.spec, situation.state, situation.seen.progress
    if state.stage is Stage.IDLE and over_backoff_limit(situation):
        return Reason.BACKOFF_LIMIT_EXCEEDED, all_failures(situation)
    if state.stage is Stage.IDLE and progress.committed_at is None and _unsafe_store(situation):
        return Reason.STORE_UNSAFE, state.refusals.error
    end = deadline(spec)
    if end is not None and situation.now >= end:
        steps = f"{progress.step} of {progress.total} steps" if progress.total else f"{progress.step} steps"
        return Reason.DEADLINE_EXCEEDED, f"{_deadline_field(spec)} has passed: {steps} are committed"
    if spec.budget is not None and state.spent_usd >= spec.budget:
        return Reason.BUDGET_EXCEEDED, f"{_spent_of(state.spent_usd, spec.budget)} are spent"
    return None


def _unsafe_store(situation: Situation) -> bool:
    """Whether the last attempt ended because no tier can use the checkpoint store safely. A job with commits waits
    until the store is repaired."""
    history = situation.state.history
    return bool(history) and history[-1].reason is Reason.STORE_UNSAFE


def _deadline_field(spec: JobSpec) -> str:
    """The field of the spec with the deadline."""
    if spec.max_duration is None or deadline(spec) == spec.deadline:
        return "spec.deadline"
    return f"spec.maxDuration ({format_duration(spec.max_duration)} from the job's creation)"


def _times(failures: int) -> str:
    return f"{failures} failure" if failures == 1 else f"{failures} failures"


def _spent_of(spent: float, budget: float) -> str:
    """`12.40 of 12.00 USD`, with more decimals if two would show 0.00 of 0.00."""
    decimals = next((places for places in (2, 4, 6) if budget >= 10 ** (1 - places)), 8)
    return f"{spent:.{decimals}f} of {budget:.{decimals}f} USD"
