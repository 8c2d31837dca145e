"""The gang meter: what the nodes of an incomplete gang cost, compared with the `idle_budget` of their tier.

`accounting` counts the cost in `JobState.idle_usd`.
"""

from __future__ import annotations

from spotladder.core.accounting import HOUR
from spotladder.core.model import Instant, Tier
from spotladder.core.situation import Situation

EXACT = 1e-9
"""Tolerance for the rounding of sums of costs, in USD."""


def idle_budget_exceeded(situation: Situation) -> bool:
    """Whether the nodes of the incomplete gang have cost more than their tier's budget."""
    tier, idle = situation.tier, situation.state.idle_usd
    return tier is not None and tier.idle_budget is not None and idle > 0.0 and tier.idle_budget <= idle + EXACT


def idle_budget_ends_at(situation: Situation) -> Instant | None:
    """When the budget is used up with the nodes that are held now; None: never."""
    tier = situation.tier
    if tier is None or tier.idle_budget is None or situation.state.waiting_since is None:
        return None
    rate = situation.state.nodes * tier.price.per_node_hour / HOUR if tier.price.known else 0.0
    return situation.now + max(0.0, tier.idle_budget - situation.state.idle_usd) / rate if rate else None


def idle_budget_message(tier: Tier, usd: float) -> str:
    """Why the nodes of the gang are released."""
    budget = tier.idle_budget or 0.0
    return f"the nodes that waited for the rest of their gang cost {usd:.2f} USD (idleBudget {budget:.2f})"
