"""`spec.overlap`: when two attempts of a job run at once, and the bounds of that."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from spotladder.api.fields import Budget, Finding, PositiveDuration
from spotladder.api.record import Record
from spotladder.core.durations import format_duration
from spotladder.core.model import Handover, Seconds


class OverlapBounds(Record):
    """Bounds of the time in which two attempts of a job run at once."""

    max_duration: PositiveDuration | None = Field(
        default=None,
        description="How long a standby attempt may run beside the attempt that trains. Default: without limit.",
    )
    budget: Budget | None = Field(
        default=None,
        description="Maximum cost in USD of all standby attempts of the job. Default: without limit.",
    )
    hedge_after: PositiveDuration | None = Field(
        default=None,
        description="When an attempt has waited for capacity for this long, the next tier is started beside it, and "
        "the attempt that is ready first runs. Needs budget, and a second tier.",
    )


def overlap_problems(
    overlap: OverlapBounds, handover: Handover, provision_timeouts: Sequence[Seconds]
) -> list[Finding]:
    """Why a job with tiers of these provisionTimeouts cannot overlap its attempts like this. The paths are below
    `spec`."""
    if handover is Handover.WHEN_GONE:
        message = (
            "needs handover: Fenced, because two attempts run at once: remove overlap, or set handover: Fenced if "
            "the program uses spotladder.train"
        )
        return [Finding(("overlap",), message, at_key=True)]
    message = "" if overlap.hedge_after is None else _hedge_problem(overlap, overlap.hedge_after, provision_timeouts)
    return [Finding(("overlap", "hedgeAfter"), message, at_key=True)] if message else []


def _hedge_problem(overlap: OverlapBounds, after: Seconds, provision_timeouts: Sequence[Seconds]) -> str:
    if len(provision_timeouts) < 2:
        return "needs a second tier, which is started beside the first: add a tier, or remove hedgeAfter"
    if overlap.budget is None:
        return "needs overlap.budget, which limits what the second attempts cost: set it in USD"
    longest = max(provision_timeouts[:-1])
    if after < longest:
        return ""
    return f"has no effect, because the job leaves a tier after provisionTimeout ({format_duration(longest)}): set less"
