"""Which spot tiers of a view finish the job within its budget, where the fallback does not."""

from __future__ import annotations

from spotladder.core.accounting.held_nodes import HOUR
from spotladder.core.model import Tier, TierView
from spotladder.core.policies.safety_net import SafetyNet, price_of


def within_budget(net: SafetyNet) -> tuple[Tier, ...]:
    """The spot tiers on which the rest of the job fits into its budget, if it does not on the fallback. () if the
    budget decides nothing: without one, where the fallback fits or has no price, and where no tier fits."""
    view, fallback = net.view, net.fallback
    if view.budget is None or fallback is None or not fallback.price.known or _fits(view, fallback):
        return ()
    return tuple(tier for tier in net.spot if tier.price.known and _fits(view, tier))


def _fits(view: TierView, tier: Tier) -> bool:
    """Whether the nodes of the remaining work, and the egress of a start on another tier than the current one, cost at
    most what is left of the budget."""
    moves = not (view.live and view.current == tier.name)
    egress = view.outlook(tier.name).move.egress if moves else 0.0
    nodes = (view.remaining or 0.0) * view.workers * price_of(tier) / HOUR
    return view.budget is None or view.spent_usd + egress + nodes <= view.budget
