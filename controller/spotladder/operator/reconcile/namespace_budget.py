"""The monthly budget of a namespace, a rule of the administrator: above it, no attempt is launched.

Counts the TieredJobs that exist: those that have not ended, and those that ended within a month, each with its whole
cost. Nodes without a price are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spotladder.api.status import TieredJobStatus
from spotladder.api.stored import JobRecord, status_of
from spotladder.api.tenancy import TenantRule, budget_of, rules_for, whom
from spotladder.core.model import Instant, Phase, Seconds
from spotladder.operator.condition_types import ConditionReason, Diagnosis

MONTH: Seconds = 30 * 24 * 3600.0
"""Seconds for which an ended job counts."""


def over_budget(
    rules: Sequence[TenantRule], jobs: Iterable[JobRecord], namespace: str, now: Instant
) -> Diagnosis | None:
    """Why no job of the namespace may start an attempt; None if it has no budget, or has not reached it."""
    mine = rules_for(rules, namespace)
    budget = budget_of(mine)
    if budget is None:
        return None
    spent = sum(_spent(status_of(job), now) for job in jobs if job.namespace == namespace)
    if spent < budget:
        return None
    return Diagnosis(
        ConditionReason.NOT_ALLOWED,
        f"namespace {namespace}: its jobs of the last 30 days have cost {spent:,.2f} USD, and monthlyBudget of the "
        f"chart's tenancy is {budget:,.2f} USD: wait until older jobs no longer count, or ask {whom(mine)} to raise it",
    )


def _spent(status: TieredJobStatus, now: Instant) -> float:
    ended = [one.ended_at.timestamp() for one in status.attempts if one.ended_at]
    if status.phase in (Phase.SUCCEEDED, Phase.FAILED) and max(ended, default=now) < now - MONTH:
        return 0.0
    try:
        return float(status.cost.spent.lstrip(">"))
    except ValueError:
        return 0.0
